"""Verifies one candidate with many seeds, and runs the jobs of all seeds in one process, which compiles each program once.

The verification of a seed runs until its first costly job of the candidate, and is postponed there. When
all seeds are postponed, their jobs run in one process, and each verification starts again with the
results.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Evidence, Job, Run
from migrate_agent.tools.verify.contract.jobs import entry
from migrate_agent.tools.verify.evidence.candidate import FUNCTIONS
from migrate_agent.tools.verify.evidence.search import FUNCTION, STEP

SEVERAL = "migrate_agent.tools.verify.candidate.many_seeds:run"
EXACT, NATIVE = (entry("candidate", FUNCTIONS[kind]) for kind in ("exact", "native"))
SEARCH = entry("original", FUNCTION)
SHARED_ENTRIES = frozenset((EXACT, NATIVE, SEARCH))
"""Entries of jobs that run for many seeds in one process."""
MAX_SECONDS = 600.0
"""Limit on the seconds of the jobs of one process, unless one job alone has a higher limit."""
MAX_ROUNDS = 6
"""Number of rounds: for the original, for the exact job, for all other jobs, and for results of torch that were evicted from the cache."""


class Postponed(BaseException):
    """Raised in place of a job's run that waits for other seeds. Not an `Exception`, so that no handler in between catches it."""


class SharedSandbox:
    """A sandbox for the verifications of one candidate. It caches the run of each job, with its files, until it is closed."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self.name = inner.name
        self._postponed: dict[str, Job] = {}
        self._results: dict[str, Run] = {}
        self._runs: list[Run] = []
        self._exact: set[tuple[int, int]] = set()
        """Jobs (`_form`) whose exact run is there, so that their native one may run."""
        self._folder = tempfile.TemporaryDirectory(prefix="migrate-agent-seeds-")

    def run(self, job: Job) -> Run:
        """The run of a job. Raises `Postponed` where it will run with those of other seeds."""
        key = _key(job)
        if key not in self._results and job.entry in SHARED_ENTRIES:
            if job.entry != NATIVE or _form(job) in self._exact:
                self._postponed[key] = self._lasting(job, key)
            raise Postponed
        if key not in self._results:
            self._results[key] = self._run(job)
        return self._results[key]

    def forget(self, seed: int) -> None:
        """Drop the postponed jobs of a seed whose verification has ended without them."""
        self._postponed = {key: job for key, job in self._postponed.items() if job.arguments["seed"] != seed}

    def release(self, run: Run) -> None:
        """Nothing: the run stays cached for the next round."""

    def close(self) -> None:
        """Remove the files of all runs."""
        self._folder.cleanup()
        for run in self._runs:
            self._inner.release(run)
        self._runs.clear()

    def run_postponed(self) -> None:
        """Run the postponed jobs, all of an entry in one process; each alone where that process dies."""
        by_entry: dict[str, dict[str, Job]] = {}
        for key, job in self._postponed.items():
            by_entry.setdefault(job.entry, {})[key] = job
        self._exact |= {_form(job) for job in by_entry.get(EXACT, {}).values()}
        self._postponed = {}
        with ThreadPoolExecutor(2) as pool:
            for runs in list(pool.map(self._several, by_entry.values())):
                self._results |= runs

    def _lasting(self, job: Job, key: str) -> Job:
        """The job with a copy of the exported candidate, which the postponed verification removes when it ends."""
        if STEP not in job.inputs:
            return job
        copy = Path(self._folder.name) / key
        shutil.copytree(job.inputs[STEP], copy, dirs_exist_ok=True)
        return replace(job, inputs={**job.inputs, STEP: copy})

    def _several(self, jobs: dict[str, Job]) -> dict[str, Run]:
        first = next(iter(jobs.values()))
        inputs: dict[str, Path] = {}
        names = []
        for index, job in enumerate(jobs.values()):
            names.append({name: f"{index}-{name}" for name in job.inputs})
            inputs |= {f"{index}-{name}": path for name, path in job.inputs.items()}
        seconds = min(first.limits.seconds * len(jobs), max(first.limits.seconds, MAX_SECONDS))
        inputs["jobs"] = Path(self._folder.name) / f"{threading.get_ident()}.json"
        inputs["jobs"].write_text(json.dumps([dict(job.arguments) for job in jobs.values()]), encoding="utf-8")
        arguments = {"entry": first.entry, "inputs": names}
        run = self._run(replace(first, entry=SEVERAL, arguments=arguments, inputs=inputs, limits=replace(first.limits, seconds=seconds)))
        if run.status == "ok" and isinstance(run.result, list) and len(run.result) == len(jobs):
            return {key: replace(run, output=run.output / str(index), result=run.result[index]) for index, key in enumerate(jobs)}
        if run.status in ("ok", "error"):
            raise RuntimeError(f"{SEVERAL} in {first.entry}: {run.error or 'gave no list of results'}\n{run.traceback}")
        return {key: self._run(job) for key, job in jobs.items()}  # what one of them does to its process is to be told of that one

    def _run(self, job: Job) -> Run:
        run = self._inner.run(job)
        self._runs.append(run)
        return run


def _form(job: Job) -> tuple[int, int]:
    """Seed and number of scenarios: equal for the exact and the native job of one verification."""
    return job.arguments["seed"], len(job.arguments["scenarios"])


def _key(job: Job) -> str:
    """A digest that is equal for equal jobs of the same candidate."""
    exported = sorted(job.inputs[STEP].iterdir()) if STEP in job.inputs else []
    inputs = {name: str(path) for name, path in job.inputs.items() if name != STEP}
    description = [job.side, job.entry, str(job.root), dict(job.arguments), inputs]
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for path in exported:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def with_seeds(sandbox: Sandbox, seeds: Sequence[int], verify: Callable[[Sandbox, int], Evidence]) -> list[Evidence]:
    """The evidence `verify(sandbox, seed)` for each seed.

    All calls must verify the same candidate, one that does not cheat: it could tell seeds apart in a
    shared process.
    """
    together = SharedSandbox(sandbox)
    evidences: dict[int, Evidence] = {}
    try:
        for _ in range(MAX_ROUNDS):
            for seed in seeds:
                if seed not in evidences:
                    with contextlib.suppress(Postponed):
                        evidences[seed] = verify(together, seed)
                        together.forget(seed)
            if len(evidences) == len(seeds):
                break
            together.run_postponed()
        return [evidences[seed] if seed in evidences else verify(sandbox, seed) for seed in seeds]
    finally:
        together.close()
