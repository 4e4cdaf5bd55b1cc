"""Runs the checks in order and collects their verdicts. Everything here happens outside the sandbox."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness import named_files
from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.scan.visible import visible_from
from migrate_agent.tools.types import Evidence, Example, Inventory, Limits, Unit, Verdict
from migrate_agent.tools.verify.checks.base import NEW_PROCESS, Check, load_checks
from migrate_agent.tools.verify.compare.initial_values import prepare
from migrate_agent.tools.verify.compare.pairs import hopeless
from migrate_agent.tools.verify.contract.scenario import MALFORMED, CandidateFailed, Expectations, OriginalFailed
from migrate_agent.tools.verify.contract.schedule import LARGE_ELEMENTS
from migrate_agent.tools.verify.contract.settings import NOT_COMPILED, NOT_TIMED, Performance, Portable, Unreached
from migrate_agent.tools.verify.evidence import search
from migrate_agent.tools.verify.evidence.cache import kept, key_of
from migrate_agent.tools.verify.evidence.candidate import CandidateRun, Results
from migrate_agent.tools.verify.evidence.original import expectations
from migrate_agent.tools.verify.evidence.own_code import compared_sizes
from migrate_agent.tools.verify.evidence.torchax import lay_originals, wrapped_units
from migrate_agent.tools.verify.report.details import details
from migrate_agent.tools.verify.report.figures import figures, weight_map
from migrate_agent.tools.verify.report.localise import first_divergence, how_to_capture
from migrate_agent.tools.verify.report.notes import notes
from migrate_agent.tools.verify.report.replay import save

DETAILS = "details.json"
UNLOCATED = frozenset({"raised", "draws", "state"})
"""Kinds of errors that no submodule's values show."""


@dataclass(frozen=True)
class Options:
    """How a verification is run; nothing here widens what is judged.

    `stop` ends after the first stage with a failure. `localise` looks for the first submodule that diverges (two more jobs, on failure only).
    Another `seed` draws other states, inputs and initial values. `performance` says what is timed, `portable` what is compiled
    ahead of time, if anything.
    `port` describes a port that need not be a mirror (`port_file`). `details` writes what a page shows beside the verdicts. `unrun` notes the
    lines of the original's class that no example runs, for those who do not know it from the rewriter. `unreached`: what becomes of lines of the
    port that no compared call ran. `reached_before`: which ran where other units were verified (`Reach.ran`). `seconds` bound what is optional of
    a large unit, which has `large_from` elements or takes long (`contract.schedule`).
    """

    limits: Limits = Limits()
    stop: bool = True
    localise: bool = True
    seed: int = 0
    performance: Performance = NOT_TIMED
    portable: Portable = NOT_COMPILED
    port: Mapping[str, Any] | None = None
    details: bool = False
    unrun: bool = False
    unreached: Unreached = ""
    reached_before: Mapping[str, Sequence[str]] = field(default_factory=dict)
    seconds: float = 0.0
    large_from: int = LARGE_ELEMENTS


def verify(
    unit: Unit,
    examples: Sequence[Example],
    translated: Sequence[Example],
    original: Path,
    candidate: Path,
    inventory: Inventory,
    sandbox: Sandbox,
    folder: Path,
    options: Options = Options(),
    progress: Callable[[str], None] = lambda stage: None,
) -> Evidence:
    """Find out whether the candidate's unit is equivalent to the original's.

    `original` and `candidate` are roots of the two trees; `translated[i]` is `examples[i]` in the mirror's names. `folder` receives the
    input that shows a failure, where there is one. `progress` is called with the name of each stage. Never raises for what either side's
    code does.
    """
    started = time.monotonic()
    inventory = visible_from(inventory, unit.source)
    folder.mkdir(parents=True, exist_ok=True)
    wrapped = wrapped_units(unit, inventory, candidate)
    lay_originals(wrapped.needed, inventory, original, candidate)
    _lay_named(examples, inventory, original, candidate)
    unit_examples, translated = _in_order(examples, translated)
    first_attempt, schedule = False, (options.seconds, options.large_from)

    def make(sizes: tuple[int, ...], given_folder: Path) -> Expectations:
        nonlocal first_attempt
        first_attempt = True
        threading.Thread(target=prepare, daemon=True).start()
        if (warm := getattr(sandbox, "warm", None)) is not None:
            warm("torchax" if wrapped.needed else "candidate")  # whose worker starts while the original runs
        progress("original")
        limits, seed = options.limits, options.seed
        return expectations(unit, unit_examples, original, inventory, sandbox, given_folder, limits, seed, sizes, *schedule)

    def expect() -> Expectations:
        sizes = compared_sizes(results.sources)
        return kept(key_of(unit, unit_examples, original, inventory, options.seed, sizes, *schedule), partial(make, sizes))

    arguments = (unit, unit_examples, list(translated), candidate, original, inventory, sandbox, options.limits, expect, folder)

    def obtain(results: Results, kind: str) -> None:
        if kind == "exact":
            _ = results.expected  # runs the original where this is the first attempt
            # A first attempt is right nine times in ten: looking at one call first would only cost time.
            _run_exact(results, look_first=options.stop and not first_attempt, ahead=options.stop)
        else:
            _run_native(results)

    settings: dict[str, Any] = {
        "seed": options.seed,
        "performance": options.performance,
        "portable": options.portable,
        "port": options.port,
        "wrapped": wrapped,
        "unreached": options.unreached,
        "reached_before": options.reached_before,
        "budget": options.seconds,
    }
    with Results(*arguments, **settings, obtain=obtain) as results:
        verdicts = tuple(_verdicts(results, options, progress))
        if options.details:
            progress("details")
            (folder / DETAILS).write_text(json.dumps(details(results)), encoding="utf-8")
        seconds = time.monotonic() - started
        return Evidence(
            unit.id,
            verdicts,
            seconds,
            notes(results, unrun=options.unrun),
            figures(results),
            weight_map(results),
            results.reach,
            tuple(one.id for one in wrapped.needed),
            tuple(sorted(results.refused_guesses)) if "exact" in results.runs else (),
        )


def _lay_named(examples: Sequence[Example], inventory: Inventory, original: Path, candidate: Path) -> None:
    """Put the files that the examples name by their paths into the candidate's tree: it reads what the original does."""
    paths = [path for example in examples for path in named_files.paths_in(named_files.texts_of(example.init, example.setup))]
    for folder in dict.fromkeys(("", *(file.import_root for file in inventory.files))) if paths else ():
        named_files.lay(iter(paths), (original / folder,), candidate / folder)


def _in_order(examples: Sequence[Example], translated: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Both with the calls of the module itself in front, and of these and of each method no more than the budgets allow."""
    calls = [number for number, example in enumerate(examples) if not example.method][: budgets.MAX_EXAMPLES + budgets.MAX_BRIEF]
    names = list(dict.fromkeys(example.method for example in examples if example.method))[: budgets.MAX_METHODS]
    order = [*calls, *(number for name in names for number in _of_method(examples, name))]
    return [examples[number] for number in order], [translated[number] for number in order]


def _of_method(examples: Sequence[Example], name: str) -> Iterator[int]:
    """The numbers of a method's examples, of each constructor call so many."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, example in enumerate(examples):
        if example.method == name:
            numbers.setdefault((example.init, example.setup), []).append(number)
    for of_one in [*numbers.values()][: budgets.METHOD_CONSTRUCTIONS]:
        yield from of_one[: budgets.METHOD_EXAMPLES]


def _run_exact(results: Results, look_first: bool, ahead: bool) -> None:
    """Run the float64 job; the native job (`ahead`) runs beside it, and the search after it.

    With `look_first`, one call is run alone before: where it is refused, that is all there is. Raises `CandidateFailed`, `OriginalFailed`.
    """
    first = results.expected.scenarios[:1]
    ahead = ahead and not results.large  # whose two jobs would share memory and cores
    if look_first:
        run = results.run_job("exact", first)
        if _refused(results, run):
            results.runs["exact"], results.looked_only = run, True
            return  # safe: the first call alone fails a check, and more calls cannot mend that
    if ahead:
        results.native_ahead = results.pool.submit(results.run_job, "native")
    results.run("exact")
    if ahead:
        search.start(results)


def _run_native(results: Results) -> None:
    """Take the native job that runs already, or run it; the search runs beside it. Raises `CandidateFailed`, `OriginalFailed`."""
    results.of("exact")
    if not results.large:  # whose search would share its memory; `worst_input` starts it later
        search.start(results)
    if results.native_ahead is not None:
        results.runs["native"] = results.native_ahead.result()
    else:
        results.run("native")


def _refused(results: Results, run: CandidateRun) -> bool:
    """Whether what one call gave is wrong however far rounding noise may move the original's results."""
    scenario = results.expected.scenarios[0]
    try:
        # Its own answer: what is refused elsewhere is known after the whole job, which this precedes.
        return scenario.name not in run.result["scenarios"] or hopeless(scenario, results.own_answer(run, scenario))
    except MALFORMED:  # safe: the whole job runs, and its checks say what is malformed
        return False


def _verdicts(results: Results, options: Options, progress: Callable[[str], None]) -> list[Verdict]:
    verdicts: list[Verdict] = []
    stage = ""
    for check in load_checks():
        if check.stage != stage and not check.early:
            # Leaving is safe: one failure makes the evidence `failed`, and later stages cannot take
            # it back.
            if options.stop and any(verdict.status == "fail" for verdict in verdicts):
                break
            stage = check.stage
            progress(stage)
        failed = any(verdict.status == "fail" for verdict in verdicts)
        # Safe for the same reason; the check would start a process to find a second failure.
        if failed and options.stop and check.cost >= NEW_PROCESS:
            continue
        try:
            verdict = check.judge(results)
        # Without a reference nothing can be judged: the evidence is `unverified` unless a check has
        # failed already.
        except OriginalFailed as error:
            return [*verdicts, Verdict(check.stage, check.name, "unverified", detail=str(error))]
        # Without a result of the candidate no further check can judge, and a failure is decided
        # already.
        except CandidateFailed as error:
            return [*verdicts, Verdict(check.stage, check.name, "fail", detail=str(error), error="raised", raised=error.raised)]
        except MALFORMED as error:
            verdict = Verdict(check.stage, check.name, "unverified", detail=f"could not judge: {type(error).__name__}: {error}"[:300])
        if verdict is None:
            continue
        verdicts.append(_located(results, check, verdict) if options.localise and not failed else verdict)
        if verdict.status == "fail" and (check.early or check.cost == 0 or (results.looked_only and stage == "numeric")) and options.stop:
            break
    # A refused first call must end in a failed or unverified verdict: passes of the other checks
    # alone would verify it.
    if results.looked_only and not any(verdict.status == "fail" for verdict in verdicts):
        verdicts.append(Verdict("numeric", "forward_fp64", "unverified", detail="the first call was refused, and no check said why"))
    return verdicts


def _located(results: Results, check: Check, verdict: Verdict) -> Verdict:
    """The verdict of a failed comparison with the submodule that diverges first; the input that shows it is saved."""
    if verdict.status != "fail" or check.stage != "numeric" or verdict.error in UNLOCATED:
        return verdict
    scenario = next((item for item in search.all_scenarios(results) if item.name == verdict.scenario), None)
    if scenario is None or scenario.prior >= 0:
        return verdict  # safe: it fails all the same; nothing was called, or two methods, of which calls of parts could not be told apart
    culprit = first_divergence(results, scenario, verdict)
    if culprit is not None:
        verdict = replace(verdict, detail=f"{culprit.sentence()}; {verdict.detail}", submodule=culprit.path)
    save(results, scenario, verdict, how_to_capture(verdict))
    return verdict
