"""Runs a suite: its groups in processes of their own, `jobs` at a time; prints the rate and what failed, and stores the results."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.agent.cluster.ray_workers import RayWorkers
from migrate_agent.agent.cluster.workers import LocalWorkers, Tell, Workers
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.evals import records
from migrate_agent.evals.processes import Processes
from migrate_agent.evals.suite import Group, Options, Outcome, Suite, load_suite, suite_names

HEADINGS = {
    "wrong": "Wrong",
    "refused": "Refused (the tool said so)",
    "untidy": "Untidy: the static check over the generated files",
    "excluded": "Excluded",
}
SILENCE = 60.0
"""Seconds between progress lines of one group."""


@dataclass(frozen=True)
class GroupRun:
    """A group of a suite in a process of its own: a task of `cluster.workers`, whose place is `Processes`."""

    suite: Suite
    group: Group
    options: Options
    trees: Sequence[Path] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _group_run, (self.suite.name, self.group, self.options)

    @property
    def name(self) -> str:
        """The suite and the cases."""
        return f"{self.suite.name}: {', '.join(self.group)}"

    def run(self, place: Processes, folder: Path, tell: Tell) -> list[Outcome]:
        """The outcomes of the cases."""
        return place.run(self.suite, self.group, self.options)

    def keeps(self, result: list[Outcome]) -> bool:
        """Nothing is left."""
        return False


def _group_run(suite: str, group: Group, options: Options) -> GroupRun:
    return GroupRun(load_suite(suite), group, options)


class FinishedGroup(NamedTuple):
    """A group that has ended."""

    group: Group
    outcomes: list[Outcome]
    seconds: float


def run(name: str, options: Options, jobs: int = 1, output: Path = records.FOLDER, resume: bool = False, cluster: str = "") -> int:
    """Run a suite; print and store its outcomes.

    `resume` leaves out the groups of which the results are kept. Gives 0 where all in scope are right and tidy, else 1.
    Raises `UsageError` for an unknown suite, a filter that nothing matches, and `resume` where nothing is kept.
    """
    suite = _suite(name)
    groups = _groups(suite, options, output, resume)
    outcomes: list[Outcome] = []
    started = time.monotonic()
    keep = (
        suite.kept and not options.quick and set(groups) <= set(suite.groups(replace(options, filter="", seed=None)))
    )  # a part of a group is never kept

    def store(complete: bool) -> Path:
        if keep:
            return records.write(records.assembled(suite, output), output)
        result = records.document(suite, options, outcomes, time.monotonic() - started, suite.versions(outcomes))
        return records.write(result, output, complete)

    for finished in run_groups(suite, groups, options, jobs, cluster):
        outcomes += finished.outcomes
        if keep:
            records.store_group(suite, finished.group, finished.outcomes, finished.seconds, output)
        store(complete=False)  # what is done is kept, however the rest ends
    _print(suite, outcomes)
    print(f"results: {store(complete=True)}")
    return 0 if all(outcome.status in ("right", "excluded", "tidy") for outcome in outcomes) else 1


def command(
    suite: str,
    only: str,
    jobs: int,
    samples: str,
    quick: bool,
    sandbox: str,
    resume: bool,
    output: Path,
    limit: int | None = None,
    seeds: int = 1,
    seed: int | None = None,
    keep: Path | None = None,
    sources: Path | None = None,
    cluster: str = "",
) -> int:
    """`run`, from the texts of a command line. Raises `UsageError`."""
    if samples != "all" and not (samples.isdecimal() and int(samples)):
        raise UsageError(f"--samples is a number of at least 1 or `all`, not {samples!r}")
    size = None if samples == "all" else int(samples)
    options = Options(only, size, quick, sandbox, limit, seeds, seed, _text(keep), _text(sources))
    return run(suite, options, jobs, output, resume, cluster)


def _text(folder: Path | None) -> str:
    return "" if folder is None else str(folder.resolve())


def _suite(name: str) -> Suite:
    if name not in suite_names():
        raise UsageError(f"there is no suite {name!r}; --suite is one of {', '.join(suite_names())}")
    return load_suite(name)


def _groups(suite: Suite, options: Options, output: Path, resume: bool) -> Sequence[Group]:
    groups = suite.groups(options)
    if not groups:
        raise UsageError(f"no case of the suite {suite.name} has {options.filter!r} in its name (--filter)")
    if not resume:
        return groups
    if not suite.kept or options.quick:
        raise UsageError(f"--resume: {'quick results' if options.quick else f'results of the suite {suite.name}'} are not kept by group")
    stored = records.stored_groups(suite, output)
    return [group for group in groups if group not in stored]


def run_groups(suite: Suite, groups: Sequence[Group], options: Options, jobs: int, cluster: str = "") -> Iterator[FinishedGroup]:
    announced: dict[Group, float] = {}

    def heard(group: Group, so_far: Sequence[Outcome]) -> None:
        now = time.monotonic()
        if now - announced.setdefault(group, now) >= SILENCE:
            announced[group] = now
            _say(f"{suite.name}: {', '.join(group)}: {len(so_far)} done, of these {records.rate(records.count(so_far))} right")

    workers: Workers = RayWorkers(cluster, Processes) if cluster else LocalWorkers(Processes(heard=heard), max(1, jobs))

    def one(group: Group) -> FinishedGroup:
        started = announced[group] = time.monotonic()
        _say(f"{suite.name}: {', '.join(group)} …")
        # What a group needs is read from the clone that its process runs in, and nothing is left in a folder.
        outcomes = workers.call(GroupRun(suite, group, options), Path(), lambda text: _say(f"{suite.name}: {', '.join(group)}: {text}"))
        return FinishedGroup(group, outcomes, time.monotonic() - started)

    with closing(workers), ThreadPoolExecutor(workers.capacity) as pool:
        try:
            for number, future in enumerate(as_completed([pool.submit(one, group) for group in groups]), 1):
                finished = future.result()
                rate = records.rate(records.count(finished.outcomes))
                _say(f"[{number}/{len(groups)}] {', '.join(finished.group)}: {rate} right, {finished.seconds:.0f} s")
                yield finished
        except BaseException:
            # First no new groups, then the end of those that run: the other way round a thread would start the next.
            pool.shutdown(wait=False, cancel_futures=True)
            workers.close()
            raise


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(suite: Suite, outcomes: Sequence[Outcome]) -> None:
    for status, heading in HEADINGS.items():
        chosen = sorted((outcome for outcome in outcomes if outcome.status == status), key=lambda outcome: outcome.case)
        if chosen:
            print(f"\n{heading}: {len(chosen)}")
        for outcome in chosen:
            print(f"  {outcome.case}: {outcome.reason}")
    for line in suite.report(outcomes):
        print(line)
    print(f"\n{suite.title}: {records.rate(records.count(outcomes))} {suite.unit} right")


def main() -> int:
    """As `migrate-agent eval`."""
    from migrate_agent.agent.cli import guarded

    return guarded(["eval", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
