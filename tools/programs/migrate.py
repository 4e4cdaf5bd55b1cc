"""Migrates one program: observes it, rewrites it, and judges the rewrite."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Literal

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.programs.bounds import with_bounds
from migrate_agent.tools.programs.judge.beside import Beside, Missed
from migrate_agent.tools.programs.judge.judge import BRIEF_SECONDS, Judge, ProgramFailedError
from migrate_agent.tools.programs.judge.variants import Further
from migrate_agent.tools.programs.observe import ObservationError, observe
from migrate_agent.tools.programs.profile import refusals
from migrate_agent.tools.programs.program import Program, stage
from migrate_agent.tools.programs.rewrite.assemble import merged, rewrite_program
from migrate_agent.tools.programs.rewrite.drafts.tree_steps import ALIASES, with_tree_steps
from migrate_agent.tools.programs.rewrite.program_files import ProgramFiles
from migrate_agent.tools.programs.rewrite.unreached import as_reached
from migrate_agent.tools.programs.shortened import difference, shortened
from migrate_agent.tools.record.at_once import in_order
from migrate_agent.tools.rewrite.assemble.formatting import format_python
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Evidence, Inventory, Limits, Observations
from migrate_agent.tools.verify.evidence.stubs import without_idle_imports


@dataclass(frozen=True)
class Migrated:
    """What became of a program: its draft, the evidence on it where it was judged, and otherwise why it was not."""

    target: str
    draft: Draft
    evidence: Evidence | None = None
    reason: str = ""
    too_long: bool = False
    """Whether the original took more than its time."""


def migrate_program(
    program: Program,
    root: Path,
    sandbox: Sandbox,
    folder: Path,
    limits: Limits,
    tell: Callable[[str], None],
    units: Sequence[str] = (),
    known: Observations | None = None,
    style: Literal["plain", "close"] = "close",
    keep: bool = False,
    scan_layers: bool = False,
) -> Migrated:
    """Observe, rewrite and judge a program. `units` are ids of modules that the mirror holds already, `known` what they were observed with, and
    `style` and `scan_layers` are the mirror's. What no run reaches becomes an error; with `keep` it stays. A program that takes more than its time is
    judged with fewer rounds of its loops, where its script says how many there are.
    """

    def migrated(one: Program) -> Migrated:
        return _migrated(one, root, sandbox, folder, limits, tell, units, known, style, keep, scan_layers)

    whole = migrated(program)
    shorter = shortened(program, (root / program.source).read_text(encoding="utf-8-sig")) if whole.too_long else None
    if shorter is None:
        return whole
    tell(f"takes longer than {limits.seconds:g} s: once more with {difference(shorter, program)}")
    return _with_whole_run(
        migrated(shorter), shorter, f"judged with {difference(shorter, program)}: the whole run takes longer than {limits.seconds:g} s"
    )


def _with_whole_run(migrated: Migrated, shorter: Program, note: str) -> Migrated:
    """The same with the script's own numbers of rounds, and a note."""
    text = migrated.draft.files.get(migrated.target, "")
    whole = with_bounds(text, [bound.reverse for bound in shorter.bounds]) if text else text
    if whole is None:
        return replace(migrated, evidence=None, reason=f"{note}; its rewrite does not have these numbers where the script has them")
    files = {**migrated.draft.files, **({migrated.target: whole} if text else {})}
    draft = replace(migrated.draft, files=files, notes=(note, *migrated.draft.notes))
    return replace(migrated, draft=draft, reason=f"{migrated.reason} ({note})" if migrated.reason else "")


def _migrated(
    program: Program,
    root: Path,
    sandbox: Sandbox,
    folder: Path,
    limits: Limits,
    tell: Callable[[str], None],
    units: Sequence[str],
    known: Observations | None,
    style: Literal["plain", "close"],
    keep: bool,
    scan_layers: bool,
) -> Migrated:
    original = stage(root, program, folder / "original")
    inventory = replace(scan(original), style=style, scan_layers=scan_layers)
    target = next((file.target for file in inventory.files if file.path == program.source), program.source)
    if reasons := refusals((original / program.source).read_text(encoding="utf-8-sig")):
        return Migrated(target, Draft({}), reason=f"{program.source}: {reasons[0]}")
    tell("running it, watched")
    began = time.monotonic()
    try:
        seen = observe(program, inventory, sandbox, folder / "recording", limits)
    except ObservationError as error:
        return Migrated(target, Draft({}), reason=str(error), too_long=error.too_long)
    rewrite = partial(
        rewrite_program,
        inventory,
        program=program,
        folder=folder,
        units=units,
        recorded=seen.optimizers,
        known=known,
        constructions=seen.constructions,
        contained=seen.contained,
    )
    every = seen.recording.observations
    draft = Draft({})
    # Runs of a brief program take less time than a second rewriting, which knows the further ones.
    if time.monotonic() - began > BRIEF_SECONDS:
        tell("rewriting")
        draft = rewrite(observations=every)
        if draft.holes or not draft.files:
            return Migrated(target, draft, reason=_first_holes(draft))
    try:
        beside = ProgramFiles(inventory, program.source, units=units).beside()
        judge = Judge(program, original, sandbox, folder / "runs", limits, tell, beside)
        observed = partial(_observed, judge, program, inventory, sandbox, folder, limits)
        watched = [
            (further, more) for further, more in zip(judge.further, in_order(observed, judge.further), strict=True) if more is not None
        ]
        tell("rewriting")
        judge.further, draft = _with_further(draft, every, watched, rewrite)
        if draft.holes or not draft.files:
            return Migrated(target, draft, reason=_first_holes(draft))
        draft, evidence = _judged(judge, draft, original, folder / "candidate", target)
    except ProgramFailedError as error:
        return Migrated(target, draft, reason=str(error), too_long=error.too_long)
    # Of what is idle no line is left that an error could stand for.
    if not judge.idle and [verdict.check for verdict in evidence.verdicts if verdict.status != "pass"] == ["reach"]:
        script = Missed(Beside(program.source, target, ()), *map(tuple, judge.missed))
        return _reached(Migrated(target, draft, evidence), original, (script, *judge.missed_beside), keep)
    return Migrated(target, draft, evidence)


def _judged(judge: Judge, draft: Draft, original: Path, folder: Path, target: str) -> tuple[Draft, Evidence]:
    """The draft and the evidence on it: with steps that take modules as trees, or as graphs where a variable stands at two places."""
    tree = with_tree_steps(draft)
    evidence = judge.judge(lay_out(original, tree.files, folder), target)
    if tree is not draft and any(ALIASES in verdict.detail for verdict in evidence.verdicts if verdict.status == "fail"):
        return draft, judge.judge(lay_out(original, draft.files, folder), target)
    return tree, evidence


def _first_holes(draft: Draft) -> str:
    holes = [f"{hole.source}:{hole.span.line}: {hole.reason}" for hole in draft.holes[:3]]
    return "; ".join(holes) or "nothing was rewritten"


def _with_further(
    plain: Draft, every: Observations, watched: Sequence[tuple[Further, Observations]], rewrite: Callable[..., Draft]
) -> tuple[tuple[Further, ...], Draft]:
    """Further runs that reach more lines, such as those that go on from a checkpoint, and the draft that knows them: the plain one, made here where it is
    empty, where there are none. A run that no rule covers the rewrite of beside the plain one, such as one that takes another branch of a step, is left
    out, so that its lines are not reached.
    """
    # One rewrite knows all of them where the rules cover them.
    if watched and not (together := rewrite(observations=reduce(_wider, (more for _, more in watched), every))).holes:
        return tuple(further for further, _ in watched), together
    draft, chosen = plain if plain.files else rewrite(observations=every), list[Further]()
    for further, more in watched if len(watched) > 1 and not draft.holes else ():
        if not (wider := rewrite(observations=_wider(every, more))).holes:
            every, draft = _wider(every, more), wider
            chosen.append(further)
    return tuple(chosen), draft


def _wider(every: Observations, more: Observations) -> Observations:
    return merged(more, every)


def _observed(
    judge: Judge, program: Program, inventory: Inventory, sandbox: Sandbox, folder: Path, limits: Limits, further: Further
) -> Observations | None:
    """What expressions were in a further run; `None` where it does not run watched, though the judge ran it."""
    root = judge.stage(inventory.root, further.variant)
    arguments = program.arguments(options=further.variant.options.split(), without=further.variant.without)
    again = replace(program, command=tuple(arguments["command"]))
    recording = folder / f"recording-further{further.variant.folder}"
    try:
        return observe(again, replace(inventory, root=root), sandbox, recording, limits).recording.observations
    except ObservationError:
        return None


def _reached(migrated: Migrated, original: Path, missed: Sequence[Missed], keep: bool) -> Migrated:
    """The same with errors in the places that no run reached: the other verdicts hold for it too, since none of these places ran."""
    draft, evidence, files = migrated.draft, migrated.evidence, dict[str, str]()
    assert evidence is not None
    state = "kept, as [run] keep_unreached asks" if keep else "not migrated, an error once it runs"
    notes: list[str] = []
    for one in missed:
        target = one.file.target
        if target not in draft.files:
            return migrated
        result = as_reached(
            (original / one.file.source).read_text(encoding="utf-8-sig"), draft.files[target], (one.original, one.rewrite), keep
        )
        if result is None:
            return migrated
        text, chosen = result
        notes += [f"{target}:{region.lines[0]}: no run of [[program]] comes here{region.reason}: {state}" for region in chosen]
        files[target] = text if keep else without_idle_imports(draft.files[target], text)
    passed = replace(evidence.verdicts[-1], status="pass", detail=f"{len(notes)} places that no run reaches are {state}")
    return Migrated(
        migrated.target,
        replace(draft, files={**draft.files, **format_python(files)}, notes=(*draft.notes, *notes)),
        replace(evidence, verdicts=(*evidence.verdicts[:-1], passed)),
    )


def lay_out(original: Path, files: Mapping[str, str], folder: Path) -> Path:
    """A copy of the repository with these files in it. Gives `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder
