"""Packages of the package index, pinned and fetched at run time, migrated and verified class by class with `--no-llm`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from migrate_agent.evals.records import count, in_scope
from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.evals.zoo_packages.packages import Package, PackageError, load_packages
from migrate_agent.evals.zoo_packages.zoo_quick import judge_in_process
from migrate_agent.evals.zoo_packages.zoo_run import run_package


@cache
def packages() -> dict[str, Package]:
    """Name → package."""
    return {package.name: package for package in load_packages()}


def groups(options: Options) -> Sequence[Group]:
    """One package at a time; the largest first, so that none is left to run alone at the end."""
    chosen = sorted(
        (package for package in packages().values() if options.wanted(package.name)), key=lambda package: -len(package.examples)
    )
    return [(package.name,) for package in chosen]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Judge every module class of these packages: `right` means `verified` (or, `quick`, equal in float64)."""
    for name in group:
        with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
            try:
                if options.quick:
                    yield from judge_in_process(packages()[name], Path(folder))
                else:
                    yield from run_package(packages()[name], Path(folder), options.sandbox)
            except PackageError as error:
                yield Outcome(name, "refused", f"not fetched: {error}")


def versions(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """What the suite was measured on: our frameworks, and the packages of which a case came up."""
    names = {outcome.case.partition("/")[0] for outcome in outcomes}
    installed = {name: version(name) for name in ("torch", "jax", "flax", "numpy")}
    for name in sorted(names & packages().keys()):
        installed |= packages()[name].versions
    return installed


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Verdicts, generated files, and how many classes of each package and kind are right."""
    rows: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        rows.setdefault(outcome.case.partition("/")[0], []).append(outcome)
    counts = {name: count(cases) for name, cases in sorted(rows.items())}
    return {
        "files": sum(outcome.details.get("files", 0) for outcome in outcomes),
        "packages": {
            name: {"family": packages()[name].family, "right": row["right"], "in_scope": in_scope(row)}
            for name, row in counts.items()
            if name in packages()
        },
    }


ZOO = Suite(
    "zoo", "Packages from the index, class by class", "module classes", groups, run, 4 * 3600.0, versions, kept=True, summary=summary
)
