"""The verified units of a finished run, with their commits and all that a reviewer is told of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from safetensors import safe_open

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import read
from migrate_agent.agent.loop.programs import DRAFT, ROW
from migrate_agent.agent.loop.unit_work import UnitWork, load_settled, load_work
from migrate_agent.agent.pr.sheet import Exercise, Sheet, digest
from migrate_agent.agent.repository.git import Repository
from migrate_agent.agent.runs.class_text import class_node, class_text
from migrate_agent.agent.runs.folder import RunFolder, home_of, runs
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.agent.runs.state import Plan, Settings
from migrate_agent.tools.record.store import load_recording
from migrate_agent.tools.types import Draft, Example, Inventory, Recording, Unit, UnitReport

EXERCISES = 4
"""Examples that are told of a unit; the report of the run has them all."""
PLACED = re.compile(r"^(?P<path>[^\s:]+\.py):(?P<line>\d+): (?P<text>.+)$", re.DOTALL)
"""A note on a line of the original."""
SCRIPT = "__main__"
"""The name of a program beside its file. Branches of its classes lie beside its own: `train.py/__main__`, `train.py/Net`."""
_TENSOR = re.compile(r"_tensors\[[\"']([^\"']+)[\"']\]")


@dataclass(frozen=True)
class Change:
    """One verified unit: the commit of the run that brought it, which is compared with its parent."""

    sheet: Sheet
    commit: str
    paths: frozenset[str] = frozenset()

    @property
    def unit(self) -> str:
        """Its id."""
        return self.sheet.unit

    @property
    def needs(self) -> tuple[str, ...]:
        """Ids of the units that it needs."""
        return self.sheet.needs


@dataclass(frozen=True)
class Finished:
    """A run: what was migrated, the units that were verified in the order of their commits, and why the others were not."""

    base: str
    changes: tuple[Change, ...]
    others: dict[str, str]


def last_run(repository: Repository) -> Finished | None:
    """The last run, `None` where there is none. Raises `UsageError` where it was interrupted."""
    finished = runs(home_of(repository.common))
    if finished and not finished[-1].finished:
        raise UsageError("the last run was interrupted: go on with `migrate-agent resume`, then submit")
    return _read(repository, finished[-1]) if finished else None


def _read(repository: Repository, folder: RunFolder) -> Finished:
    settings, plan = read(folder / "settings.json", Settings), read(folder / "plan.json", Plan)
    inventory, recording = read(folder / "inventory.json", Inventory), _recording(folder / "recorded")
    changes: list[Change] = []
    others: dict[str, str] = {}
    for position, identifier in enumerate(plan.order):
        unit = inventory.unit(identifier)
        unit_folder = folder.unit(position, unit.name)
        report = load_settled(unit_folder).report
        if report.status != "verified" or not report.commit:
            others[identifier] = f"{report.status}: {report.reason}" if report.reason else report.status
            continue
        sheet = _sheet(settings.base, folder / "original", unit, report, load_work(unit_folder, report.attempts), recording)
        changes.append(Change(sheet, report.commit, touched(repository, report.commit)))
    for program in sorted((folder.path / "programs").glob("*")):
        # What a run of an earlier version left has no row.
        if not (program / ROW).exists():
            continue
        report, draft = read(program / ROW, UnitReport), read(program / DRAFT, Draft)
        if report.status != "verified" or not report.commit:
            others[f"{report.source}:{SCRIPT}"] = f"{report.status}: {report.reason}" if report.reason else report.status
            continue
        sheet = _program_sheet(settings.base, folder / "original", report, draft, changes)
        changes.append(Change(sheet, report.commit, touched(repository, report.commit)))
    return Finished(settings.base, tuple(changes), others)


def _program_sheet(base: str, original: Path, report: UnitReport, draft: Draft, changes: Sequence[Change]) -> Sheet:
    """The sheet of a program. It needs the units whose rewrites its own files hold or import."""
    imports = {name for text in draft.files.values() for name in imported_files(text)}
    return Sheet(
        unit=f"{report.source}:{SCRIPT}",
        source=report.source,
        name=SCRIPT,
        target=report.target,
        base=base,
        proposer=report.proposer,
        original=digest((original / report.source).read_text(encoding="utf-8")),
        port=digest(draft.files[report.target]),
        needs=tuple(c.unit for c in changes if c.sheet.target in draft.files or Path(c.sheet.target).stem in imports),
        attempts=report.attempts,
        verdicts=report.verdicts,
        notes=report.notes,
        files={path: digest(text) for path, text in sorted(draft.files.items())},
    )


def imported_files(text: str) -> set[str]:
    """The last parts of the names of the modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(alias.name for alias in node.names)}
    return {name.rpartition(".")[2] for name in names}


def _recording(folder: Path) -> Recording:
    """The run's recording; nothing where an earlier version of this program wrote it otherwise: only what was exercised goes untold then."""
    try:
        return load_recording(folder)
    except (OSError, ValueError):
        return Recording()


def touched(repository: Repository, commit: str) -> frozenset[str]:
    """Files that a commit changes."""
    return frozenset(repository.run("diff-tree", "-r", "-z", "--no-renames", "--name-only", f"{commit}^", commit).split("\0")) - {""}


def _sheet(base: str, original: Path, unit: Unit, report: UnitReport, work: UnitWork, recording: Recording) -> Sheet:
    draft, evidence = work.draft, work.evidence
    if draft is None or evidence is None:
        raise UsageError(f"the evidence of {unit.id} is missing from {work.folder}: run `migrate-agent run` again, then submit")
    source = (original / unit.source).read_text(encoding="utf-8-sig")
    written = [attempt for attempt in work.attempts if attempt.by == "llm" and attempt.name]
    return Sheet(
        unit=unit.id,
        source=unit.source,
        name=unit.name,
        target=unit.target,
        base=base,
        proposer="torchax" if report.strategy == "torchax" else report.proposer,
        original=digest(class_text(source, unit.name)),
        port=digest(class_text(draft.files[unit.target], unit.name)),
        needs=unit.needs,
        line=unit.line,
        model=written[-1].name if written and report.proposer == "llm" else "",
        attempts=report.attempts,
        verdicts=report.verdicts,
        notes=tuple(dict.fromkeys((*_own(report.notes, source, unit), *evidence.notes))),
        exercises=tuple(map(_exercise, examples_of(recording, unit.id)[:EXERCISES])),
        weights=tuple((row.name, row.path, str(row.shape), "" if row.axes is None else str(row.axes)) for row in evidence.weights),
        figures=dict(evidence.figures),
        files={path: digest(text) for path, text in sorted(draft.files.items())},
    )


def _own(notes: Iterable[str], source: str, unit: Unit) -> Iterable[str]:
    """Notes without those on a line of another class of the file, which belong to its unit."""
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    mine = class_node(ast.parse(source), unit.name)
    for note in notes:
        match = PLACED.match(note)
        line = int(match["line"]) if match and match["path"] == unit.source else 0
        theirs = any(node.lineno <= line <= (node.end_lineno or 0) for node in classes)
        if not theirs or (mine is not None and mine.lineno <= line <= (mine.end_lineno or 0)):
            yield note


def _exercise(example: Example) -> Exercise:
    return Exercise(example.init, _TENSOR.sub(r"\1", example.call), example.origin, tuple(_inputs(example)))


def _inputs(example: Example) -> Iterable[str]:
    """The recorded tensors that a call is given, with their dtypes and shapes."""
    names = dict.fromkeys(_TENSOR.findall(f"{example.init} {example.call}"))
    if example.tensors is None or not names:
        return
    with safe_open(str(example.tensors), framework="np") as tensors:
        for name in names:
            part = tensors.get_slice(name)
            yield f"{name}: {str(part.get_dtype()).lower()} {tuple(part.get_shape())}"
