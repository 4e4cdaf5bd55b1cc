"""Training programs: ours in `examples/programs/` and public ones, each migrated by the command line, and each claim compared once more."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from migrate_agent.evals.programs.confirm import Confirmed, confirm
from migrate_agent.evals.programs.listed import Listed, lay_out_program, load_programs
from migrate_agent.evals.suite import Group, Options, Outcome, Status, Suite
from migrate_agent.evals.zoo_packages.packages import PackageError
from migrate_agent.evals.zoo_packages.zoo_run import LIMIT_SECONDS, STATUS, migrate, reason_of, working_folder

STAGES = (("spec",), ("numeric",), ("behavioural", "compile"))
"""The stages of the judge, in its order; what it says of compilation counts as behaviour."""
TITLES = ("Spec", "Numeric | Spec", "Behavioural | Numeric")
FACTOR, BASE = 10.0, 60.0
"""A program that takes T seconds is verified in `FACTOR` T + `BASE` seconds at most."""


def groups(options: Options) -> Sequence[Group]:
    """Each program by itself; public ones where `--sources` names a folder of clones."""
    return [(row.name,) for row in load_programs().values() if options.wanted(row.name) and (options.sources or not row.address)]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Migrate these programs: one outcome each."""
    known = load_programs()
    for name in group:
        with working_folder(name, options.keep) as folder:
            try:
                yield judged(known[name], folder, options)
            except PackageError as error:
                yield Outcome(name, "refused", f"not read: {error}")


def judged(program: Listed, folder: Path, options: Options) -> Outcome:
    """How one program ended."""
    repository = folder / program.name
    lay_out_program(program, options.sources, repository, LIMIT_SECONDS)
    report, error = migrate(repository, folder / "report.json", options.sandbox, (program.script,))
    rows = [row for row in (report or {"units": []})["units"] if row["kind"] == "program"]
    if report is None or not rows:
        return Outcome(program.name, "wrong", f"the run gave no report: {error or 'no row of the program'}", {"passed": 0})
    row, reason = rows[0], reason_of(rows[0])
    details: dict[str, Any] = {"passed": passed(row["verdicts"]), "covers": list(program.covers), "seconds": row["seconds"]}
    if program.refused:
        by_name = row["status"] != "verified" and program.refused in reason
        return Outcome(
            program.name, "excluded" if by_name else "wrong", reason or "verified, and should be refused", details | {"by_name": by_name}
        )
    if row["status"] != "verified":
        return Outcome(program.name, STATUS[row["status"]], reason, details)
    found = _confirmed(program, repository, report["branch"], row["target"], folder)
    details |= {
        "confirmed": not found.problem,
        "comparable": found.comparable,
        "step_ratio": None if math.isnan(found.ratio) else round(found.ratio, 3),
        "step_alone": None if math.isnan(found.step_alone) else round(found.step_alone, 3),
        "original_seconds": None if math.isnan(found.whole_run) else round(found.whole_run, 1),
    }
    reason = f"verified, and the suite's own comparison does not confirm it: {found.problem}" if found.problem else ""
    status: Status = "right" if not found.problem else "wrong" if found.comparable else "refused"
    return Outcome(program.name, status, reason, details)


def _confirmed(program: Listed, repository: Path, branch: str, target: str, folder: Path) -> Confirmed:
    rewrite = folder / "rewrite"
    subprocess.run(["git", "-C", str(repository), "worktree", "add", "--quiet", "--detach", str(rewrite), branch], check=True)
    return confirm(repository, rewrite, program.script, target, program.arguments, folder / "compared", program.folder, program.steps)


def passed(verdicts: Iterable[Mapping[str, Any]]) -> int:
    """How many of `STAGES` passed, from the first on: each needs a verdict, and none that is no pass."""
    rows = list(verdicts)
    for number, stages in enumerate(STAGES):
        statuses = [row["status"] for row in rows if row["stage"] in stages]
        if not statuses or any(status != "pass" for status in statuses):
            return number
    return len(STAGES)


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts: of all programs and of those in scope, how many passed each stage; refusals by name; claims; and the ratio of step times."""
    scope = [outcome for outcome in outcomes if "by_name" not in outcome.details]
    addresses = {row.name for row in load_programs().values() if row.address}
    public = [outcome for outcome in scope if outcome.case in addresses]
    return {
        "programs": len(outcomes),
        "in_scope": len(scope),
        "public": [sum(outcome.status == "right" for outcome in public), len(public)],
        "passed": [sum(outcome.details.get("passed", 0) > number for outcome in scope) for number in range(len(STAGES))],
        "overall": sum(outcome.status == "right" for outcome in scope),
        "refused_by_name": sum(bool(outcome.details.get("by_name")) for outcome in outcomes),
        "claims": sum("confirmed" in outcome.details for outcome in outcomes),
        "unconfirmed": sum(outcome.details.get("confirmed") is False for outcome in outcomes),
        "not_comparable": sum(outcome.details.get("comparable") is False for outcome in outcomes),
        "step_ratio": _mean(outcomes, "step_ratio"),
        "step_alone": _mean(outcomes, "step_alone"),
        "timed": sum(_in_time(outcome) is not None for outcome in outcomes),
        "in_time": sum(_in_time(outcome) is True for outcome in outcomes),
    }


def _in_time(outcome: Outcome) -> bool | None:
    """Whether a program was migrated and verified in the time that its own run allows; `None` where that is not known."""
    seconds, original = outcome.details.get("seconds"), outcome.details.get("original_seconds")
    return None if not seconds or not original else seconds <= FACTOR * original + BASE


def _mean(outcomes: Sequence[Outcome], name: str) -> float | None:
    """The geometric mean of a ratio of those that have it."""
    ratios = [outcome.details[name] for outcome in outcomes if outcome.details.get(name)]
    return round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3) if ratios else None


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each program, then the stages, the rates with both denominators, and the claims."""
    for outcome in sorted(outcomes, key=lambda outcome: outcome.case):
        stages = TITLES[: outcome.details.get("passed", 0)]
        ratio, alone = outcome.details.get("step_ratio"), outcome.details.get("step_alone")
        original = outcome.details.get("original_seconds")
        whole = f", {outcome.details['seconds']:.0f} s for a run of {original:.0f} s" if original else ""
        times = whole + (f", step to step {ratio} of torch" if ratio else "") + (f", a step alone {alone}" if alone else "")
        yield f"{outcome.case:24} {outcome.status:9} {len(stages)} of {len(STAGES)} stages{times}"
    counts = summary(outcomes)
    before = counts["in_scope"]
    for title, after in zip(TITLES, counts["passed"], strict=True):
        yield f"{title}: {after} of {before}"
        before = after
    yield f"overall: {counts['overall']} of {counts['in_scope']} in scope, {counts['overall']} of {counts['programs']} in all"
    yield f"refused by name: {counts['refused_by_name']} of {counts['programs'] - counts['in_scope']} out of scope"
    yield f"claims that the suite's own comparison does not confirm: {counts['unconfirmed']} of {counts['claims']}, {counts['not_comparable']} of these since it cannot"
    if counts["timed"]:
        yield f"in at most {FACTOR:.0f} T + {BASE:.0f} s, for a run of T seconds: {counts['in_time']} of {counts['timed']}"
    if counts["step_ratio"]:
        yield f"from step to step, as a multiple of torch eager's: {counts['step_ratio']} (geometric mean)"
    if counts["step_alone"]:
        yield f"a step alone: {counts['step_alone']}"


def versions(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Our frameworks, and the commit of each public program of which a case came up."""
    names = {outcome.case for outcome in outcomes}
    commits = {row.name: row.commit for row in load_programs().values() if row.address and row.name in names}
    return {name: version(name) for name in ("torch", "jax", "flax", "numpy")} | commits


PROGRAMS_SUITE = Suite(
    "programs", "Training programs", "programs", groups, run, 1800.0, versions, kept=True, first_look=True, summary=summary, report=report
)
