"""The verifier itself: wrong rewrites, cheats and mutants must not get through, right rewrites must not be refused."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from migrate_agent.evals.mutation import corpus, mutants
from migrate_agent.evals.mutation.corpus import Case, Original, refusal_of
from migrate_agent.evals.mutation.mutants import FAR_OFF, NOT_RUN, SAME
from migrate_agent.evals.mutation.seeds import with_seeds
from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Evidence, Limits
from migrate_agent.tools.verify import Options as HowToVerify
from migrate_agent.tools.verify.evidence.cache import allow

SECONDS: Mapping[str, float] = {"cheats": 30.0}
"""What a candidate of this kind may take; cheats may try to take for ever."""
SEEDLESS = ("signature", "state_names", "state_kinds")
"""Checks beside the static ones that look at the class and at what it holds: their verdict is the same for every seed."""
RATES = {
    "wrong": "wrong rewrites refused",
    "cheats": "cheats refused",
    "right": "right rewrites accepted",
    "mutants": "mutants refused",
}


SEEDED_BYTES = 6 * 2**30
"""What is kept of torch's answers where each case of an original is verified with many seeds: else all of them are computed anew for each case."""
TIMED_OUT = "run ended with timeout"
"""What verdicts say of a job whose time ran out."""


@cache
def cases() -> Mapping[str, tuple[Case, ...]]:
    """The corpora, by original."""
    by_original: dict[str, list[Case]] = {}
    for case in corpus.load_cases():
        by_original.setdefault(case.original, []).append(case)
    return {name: tuple(rows) for name, rows in by_original.items()}


@cache
def originals() -> Mapping[str, Original]:
    """Name → original."""
    return corpus.load_originals()


def groups(options: Options) -> Sequence[Group]:
    """One group for the cases of each original, one for the mutants of each subject; single cases by their own names (`cheats/`)."""
    whole = [f"corpus-{name}" for name in cases() if options.wanted(f"corpus-{name}")]
    single = [tuple(case.id for case in rows if options.wanted(case.id)) for name, rows in cases().items() if f"corpus-{name}" not in whole]
    return [
        *((name,) for name in whole),
        *filter(None, single),
        *((f"mutants-{name}",) for name in mutants.subjects() if options.wanted(f"mutants-{name}")),
    ]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Judge the cases of these groups, with a warm sandbox and torch's answers kept."""
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder, closing(open_sandbox(options.sandbox)) as sandbox:
        for name in group:
            kind, _, rest = name.partition("-")
            if kind == "mutants":
                from migrate_agent.evals.mutation.mutant_judges import judge_mutants

                yield from judge_mutants(rest, sandbox, Path(folder), options)
            else:
                chosen = cases()[rest] if kind == "corpus" else [case for rows in cases().values() for case in rows if case.id == name]
                yield from _cases(chosen, sandbox, Path(folder), options)


def _cases(chosen: Sequence[Case], sandbox: Sandbox, folder: Path, options: Options) -> Iterator[Outcome]:
    """Verify each with as many seeds as asked for; torch's answers to a seed are kept for all cases of an original."""
    if options.seeds > 1:
        allow(SEEDED_BYTES)
    for case in chosen:
        if case.only and sandbox.name not in case.only:
            yield Outcome(case.id, "excluded", f"in {sandbox.name}: {case.skip}", {"kind": case.kind, "family": case.family})
            continue
        started = time.monotonic()
        evidence = _evidence(case, sandbox, folder, options.seeds)
        yield _outcome(case, evidence, time.monotonic() - started, folder, options)


def _evidence(case: Case, sandbox: Sandbox, folder: Path, count: int) -> list[Evidence]:
    """A case verified with seeds from 0: with the first in processes of its own, and once only where it is refused by what no seed changes.

    With the others in processes that they share, but for cheats, which might notice.
    """
    original = originals()[case.original]
    first = _verified(original, case, sandbox, folder, 0)
    if _seedless(first):
        return [first]
    if case.kind == "cheats":
        return [first, *(_verified(original, case, sandbox, folder, seed) for seed in range(1, count))]

    def with_seed(shared: Sandbox, seed: int) -> Evidence:
        return _verified(original, case, shared, folder, seed)

    return [first, *with_seeds(sandbox, range(1, count), with_seed)]


def _seedless(evidence: Evidence) -> bool:
    """Whether the text is refused by what no seed changes."""
    return any(verdict.status == "fail" and (verdict.stage == "static" or verdict.check in SEEDLESS) for verdict in evidence.verdicts)


def _outcome(case: Case, by_seed: Sequence[Evidence], seconds: float, folder: Path, options: Options) -> Outcome:
    """`right` where each verdict is what the case's kind demands."""
    accepted = case.kind == "right"
    good = all((evidence.status == "verified") == accepted for evidence in by_seed)
    worst = next((evidence for evidence in by_seed if (evidence.status == "verified") != accepted), by_seed[0])
    details: dict[str, Any] = {
        "kind": case.kind,
        "family": case.family,
        **refusal_of(worst),
        "verdicts": sorted({evidence.status for evidence in by_seed}),
        "seeds": options.seeds,
        "runs": len(by_seed),
        "place": case.place,
        "named": corpus.named_place(by_seed[0]),
        "seconds": round(seconds, 1),
    }
    if case.kind == "wrong":
        from migrate_agent.evals.mutation.allclose import passes_allclose

        details["allclose"] = passes_allclose(originals()[case.original], case.source, folder)
    return Outcome(
        case.id, "right" if good else "wrong", "" if good else f"{case.title} — {details['check']}: {details['detail']}", details
    )


def _verified(original: Original, case: Case, sandbox: Sandbox, folder: Path, seed: int) -> Evidence:
    """One verification; the place of a failure is looked for once, and where the case says what it must be."""
    limits = Limits(seconds=SECONDS.get(case.kind, corpus.CASE_SECONDS))
    settings = HowToVerify(limits=limits, seed=seed, localise=bool(case.place) and seed == 0, port=case.port)
    return corpus.verify_case(original, case.source, sandbox, folder / original.name, settings)


def summary(outcomes: Sequence[Outcome]) -> Mapping[str, Any]:
    """Counts by kind, how many wrong cases an `allclose` lets through, and how often the right submodule was named."""
    counts: dict[str, Any] = {}
    for kind in RATES:
        of_kind = [outcome for outcome in outcomes if outcome.details.get("kind") == kind]
        run_ones = [outcome for outcome in of_kind if outcome.status != "excluded"]
        counts[kind] = {"right": sum(outcome.status == "right" for outcome in run_ones), "run": len(run_ones)}
        counts[kind]["left out"] = len(of_kind) - len(run_ones)
    wrong = [outcome for outcome in outcomes if outcome.details.get("kind") == "wrong"]
    checks = Counter(outcome.details.get("check") for outcome in outcomes if outcome.details.get("kind") == "mutants")
    placed = [outcome for outcome in wrong if outcome.details["place"] and outcome.details["named"] is not None]
    flaky = [outcome.case for outcome in outcomes if len(outcome.details.get("verdicts", [])) > 1]
    seeded = [outcome for outcome in outcomes if "seeds" in outcome.details]
    seeds = Counter(outcome.details["seeds"] for outcome in seeded)
    through: dict[str, int] = {}
    for outcome in wrong:
        for tolerance, passed in outcome.details["allclose"].items():
            through[tolerance] = through.get(tolerance, 0) + passed
    return {
        **counts,
        "allclose lets through": through,
        "localised": {"right": sum(outcome.details["named"] == outcome.details["place"] for outcome in placed), "of": len(placed)},
        "cases by seeds": {str(number): count for number, count in sorted(seeds.items())},
        "refused by what no seed changes": sum(outcome.details.get("runs", 1) < outcome.details["seeds"] for outcome in seeded),
        "verdict not the same for all seeds": flaky,
        "mutants far off in float32": checks[FAR_OFF],
        "mutants that are the same program": checks[SAME],
        "mutants in code that no example runs": checks[NOT_RUN],
        "refused as time ran out": sum(TIMED_OUT in outcome.details.get("detail", "") for outcome in outcomes),
        "mutants listed": sum(outcome.details.get("listed", 0) for outcome in outcomes),
    }


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The rates, one a line."""
    totals = summary(outcomes)
    yield ""
    for kind, words in RATES.items():
        row = totals[kind]
        skipped = f", {row['left out']} left out" if row["left out"] else ""
        yield f"{words}: {row['right']} of {row['run']}{skipped}"
    wrong = totals["wrong"]["run"]
    for tolerance, passed in totals["allclose lets through"].items():
        yield f"an allclose on random inputs at {tolerance} lets {passed} of the {wrong} wrong rewrites through"
    yield f"right submodule named: {totals['localised']['right']} of {totals['localised']['of']}"
    far, equal, idle = (
        totals[f"mutants {label}"] for label in ("far off in float32", "that are the same program", "in code that no example runs")
    )
    yield (
        f"mutants: {totals['mutants']['run']} of {totals['mutants listed']} listed ({far} of them far off in plain float32); left out: "
        f"{equal} traced to the same program, {idle} in code that no example runs (the verifier notes it), "
        f"{totals['mutants']['left out'] - equal - idle} argued to be equivalent"
    )
    if late := totals["refused as time ran out"]:
        yield f"refused as their time ran out, which a machine under load does to any: {late}"
    flaky = totals["verdict not the same for all seeds"]
    for seeds, count in totals["cases by seeds"].items():
        yield f"verified with {seeds} seed{'s' if seeds != '1' else ''}: {count} cases"
    if set(totals["cases by seeds"]) - {"1"}:
        yield f"verdict not the same for all seeds: {len(flaky)}" + (f" ({json.dumps(flaky)})" if flaky else "")
        once = totals["refused by what no seed changes"]
        yield f"of these, refused by a check that no seed changes, and so run with one seed only: {once}"


def versions(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """The frameworks."""
    return {name: version(name) for name in ("torch", "jax", "flax", "numpy")}


VERIFIER = Suite(
    "verifier",
    "The verifier on wrong, cheating, mutated and right rewrites",
    "cases",
    groups,
    run,
    4 * 3600.0,
    versions,
    kept=True,
    summary=summary,
    report=report,
)
