"""Runs a suite: its groups in processes of their own, `jobs` at a time; prints the rate and what failed, and stores the results."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from migrate_agent.evals import results
from migrate_agent.evals.suite import Group, Options, Outcome, Suite, load_suites
from migrate_agent.evals.worker import decode

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}
"""Groups run side by side: one thread each."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for: 0 where all in scope are right, 1 where not, 2 for wrong usage."""
    names = sorted(load_suites())
    parser = argparse.ArgumentParser(prog="migrate-agent eval", description="Measure the rewriter on cases that nobody here wrote.")
    parser.add_argument("--suite", required=True, choices=names)
    parser.add_argument("--filter", default="", metavar="TEXT[,TEXT]", help="only cases with one of these texts in their name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time (default: one a core)")
    parser.add_argument("--samples", default="20", metavar="N|all", help="inputs of a case at most (default: 20)")
    parser.add_argument("--quick", action="store_true", help="zoo: compare forward and gradients only, without the verifier")
    parser.add_argument(
        "--sandbox", default="auto", choices=("auto", "docker", "bubblewrap", "process"), help="zoo: where the packages run"
    )
    parser.add_argument("--output", type=Path, default=results.FOLDER, metavar="DIR", help=f"where results go (default: {results.FOLDER})")
    given = parser.parse_args(arguments)
    samples = None if given.samples == "all" else int(given.samples)
    return run(given.suite, Options(given.filter, samples, given.quick, given.sandbox), max(1, given.jobs), given.output)


def run(name: str, options: Options, jobs: int, output: Path) -> int:
    """Run a suite, print and store what came out; gives the exit status (see `main`). Raises `KeyError` for an unknown suite."""
    suite, started = load_suites()[name], time.monotonic()
    groups = suite.groups(options)
    if not groups:
        print(f"no case of {name} matches {options.filter!r}", file=sys.stderr)
        return 2
    outcomes: list[Outcome] = []

    def store(complete: bool) -> Path:
        result = results.document(suite, options, outcomes, time.monotonic() - started, suite.versions(outcomes))
        return results.write(result, output, complete)

    for found in _outcomes(suite, groups, options, jobs):
        outcomes += found
        store(complete=False)  # what is done is kept, however the rest ends
    _print(suite, outcomes)
    print(f"results: {store(complete=True)}")
    return 0 if all(outcome.status in ("right", "excluded") for outcome in outcomes) else 1


def _outcomes(suite: Suite, groups: Sequence[Group], options: Options, jobs: int) -> Iterator[list[Outcome]]:
    with ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(run_group, suite, group, options) for group in groups]
        for done, future in enumerate(as_completed(running), 1):
            found = future.result()
            print(
                f"[{done}/{len(groups)}] {found[0].case if found else '-'} … {results.rate(results.count(found))}",
                file=sys.stderr,
                flush=True,
            )
            yield found


def run_group(suite: Suite, group: Group, options: Options) -> list[Outcome]:
    """Run a group in a process of its own; where that dies, each case alone, so that one bad case costs the others nothing."""
    found, error = _process(suite, group, options)
    if not error:
        return found
    if len(group) > 1:
        return [outcome for case in group for outcome in run_group(suite, (case,), options)]
    return [*found, Outcome(group[0], "wrong", f"the suite's process died: {error}")]


def _process(suite: Suite, group: Group, options: Options) -> tuple[list[Outcome], str]:
    """The outcomes that were written, and in one line what ended the process early, if anything."""
    order = json.dumps({"suite": suite.name, "group": group, "options": asdict(options)})
    command = [sys.executable, "-m", "migrate_agent.evals.worker"]
    limit = suite.seconds * len(group)
    try:
        done = subprocess.run(
            command, input=order, capture_output=True, text=True, check=False, timeout=limit, env={**os.environ, **ENVIRONMENT}
        )
    except subprocess.TimeoutExpired as error:
        text = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        return [decode(line) for line in text.splitlines() if line.endswith("}")], f"no end after {limit:.0f} s"
    last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
    return [decode(line) for line in done.stdout.splitlines()], last[0][:300] if done.returncode else ""


def _print(suite: Suite, outcomes: Sequence[Outcome]) -> None:
    for status, heading in (("wrong", "Wrong"), ("refused", "Refused (the tool said so)"), ("excluded", "Excluded")):
        chosen = sorted((outcome for outcome in outcomes if outcome.status == status), key=lambda outcome: outcome.case)
        if chosen:
            print(f"\n{heading}: {len(chosen)}")
        for outcome in chosen:
            print(f"  {outcome.case}: {outcome.reason}")
    print(f"\n{suite.title}: {results.rate(results.count(outcomes))} {suite.unit} right")


if __name__ == "__main__":
    sys.exit(main())
