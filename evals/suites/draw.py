"""Packages drawn by lot, at first look: classes verified of those exercised, and top-level models verified, without and with examples.

The first results of a package are its first look; they are never overwritten. Those of later runs stand beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.evals.suite import Group, Options, Outcome, Status, Suite
from migrate_agent.evals.zoo_packages.draws import DRAWS, earlier, lay_out_texts, load_draw, seeds
from migrate_agent.evals.zoo_packages.packages import Package, PackageError
from migrate_agent.evals.zoo_packages.top_level import top_level
from migrate_agent.evals.zoo_packages.zoo_run import LIMIT_SECONDS, STATUS, commit_all, migrate, reason_of, working_folder, write_examples
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Cause

BARE = "bare"
"""The run without examples: what inference and the package's own texts reach."""
WITH_EXAMPLES = "examples"
KINDS = (BARE, WITH_EXAMPLES)


def groups(options: Options) -> Sequence[Group]:
    """Each package of the draws, once a kind: `101/linformer/bare`."""
    chosen = seeds() if options.seed is None else [options.seed]
    names = [f"{seed}/{package.name}/{kind}" for seed in chosen for package in load_draw(seed).packages for kind in KINDS]
    return [(name,) for name in names if options.wanted(name)]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Migrate these packages: one outcome for each module class."""
    for name in group:
        seed, package, kind = name.split("/")
        chosen = next(entry for entry in load_draw(int(seed)).packages if entry.name == package)
        with working_folder(name, options.keep) as folder:
            try:
                yield from _judged(name, chosen, kind == WITH_EXAMPLES, folder, options)
            except PackageError as error:
                yield Outcome(name, "refused", f"not fetched: {error}")


def _judged(name: str, package: Package, examples: bool, folder: Path, options: Options) -> Iterator[Outcome]:
    repository, report = folder / package.name, folder / "report.json"
    lay_out_texts(package, repository)
    write_examples(package if examples else replace(package, examples=()), repository, LIMIT_SECONDS)
    commit_all(repository)
    rows, error = migrate(repository, report, options.sandbox, package.sample)
    if rows is None:
        yield Outcome(name, "wrong", f"the run gave no report: {error}")
        return
    tops = top_level(scan(repository))
    yield from (_outcome(name, package.exclude, row, tops) for row in rows["units"])


def _outcome(name: str, exclude: Mapping[str, str], row: Mapping[str, Any], tops: frozenset[str]) -> Outcome:
    unit = f"{row['source']}:{row['name']}"
    exercised = row["status"] != "skipped" and row["cause"] != Cause.NO_EXAMPLE
    details = {"top": unit in tops, "exercised": exercised, "cause": row["cause"], "seconds": row["seconds"]}
    status: Status = STATUS[row["status"]] if exercised else "excluded"
    if unit in exclude:
        return Outcome(f"{name}/{unit}", "excluded", exclude[unit], {**details, "impossible": True})
    return Outcome(f"{name}/{unit}", status, reason_of(row), details)


def figures(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Counts over classes: `classes` in all, `exercised`, `verified`, and of the top-level models `top` in all, `top_verified`.

    Classes that nobody can exercise are left out. An inferred example that does not run on the original exercises nothing.
    """
    counted = [outcome for outcome in outcomes if "top" in outcome.details and not outcome.details.get("impossible")]
    tops = [outcome for outcome in counted if outcome.details["top"]]
    return {
        "classes": len(counted),
        "exercised": sum(_exercised(outcome) for outcome in counted),
        "verified": sum(outcome.status == "right" for outcome in counted),
        "top": len(tops),
        "top_verified": sum(outcome.status == "right" for outcome in tops),
    }


def _exercised(outcome: Outcome) -> bool:
    guessed = outcome.case.split("/")[2] == BARE
    return bool(outcome.details["exercised"]) and not (guessed and outcome.details["cause"] == Cause.EXAMPLE_FAILED)


def _by_group(outcomes: Sequence[Outcome]) -> Mapping[str, list[Outcome]]:
    rows: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        rows.setdefault("/".join(outcome.case.split("/")[:3]), []).append(outcome)
    return MappingProxyType(rows)


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures of each package and kind, and where a package was seen before."""
    rows = {name: figures(cases) for name, cases in sorted(_by_group(outcomes).items())}
    seen = {name: earlier(name.split("/")[1], int(name.split("/")[0])) for name in rows}
    return {"packages": {name: {**row, "seen_before": seen[name]} for name, row in rows.items()}}


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each package and kind, and one for all packages of a kind."""
    rows = {name: figures(cases) for name, cases in sorted(_by_group(outcomes).items())}
    for kind in KINDS:
        chosen = {name: row for name, row in rows.items() if name.endswith(f"/{kind}")}
        total = {key: sum(row[key] for row in chosen.values()) for key in figures(())}
        for name, row in [*chosen.items(), (f"all, {kind}", total)]:
            yield (
                f"{name:48} verified {row['verified']:3} of {row['exercised']:3} exercised of {row['classes']:3} classes; "
                f"top-level models {row['top_verified']:2} of {row['top']:2}"
            )


def versions(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """What the draw was measured on: our frameworks, and the packages of which a case came up."""
    installed = {name: version(name) for name in ("torch", "jax", "flax", "numpy")}
    places = {tuple(outcome.case.split("/")[:2]) for outcome in outcomes}
    for seed in sorted({place[0] for place in places}):
        for package in load_draw(int(seed), DRAWS).packages:
            if (seed, package.name) in places:
                installed |= package.versions
    return installed


DRAW = Suite(
    "draw",
    "Packages drawn by lot",
    "module classes",
    groups,
    run,
    3600.0,
    versions,
    kept=True,
    first_look=True,
    summary=summary,
    report=report,
)
