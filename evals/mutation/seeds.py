"""One candidate verified with many seeds: what its jobs have in common is done once for all of them.

The verification of a seed runs until it asks for a job of the candidate's that costs much, and is put off there; when all seeds have come
that far, these jobs run in one process (`several`), and each verification starts again with what they gave.
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
from migrate_agent.tools.verify.evidence.candidate import ENTRIES
from migrate_agent.tools.verify.evidence.search import ENTRY as SEARCH
from migrate_agent.tools.verify.evidence.search import STEP

SEVERAL = "migrate_agent.tools.verify.candidate.many_seeds:run"
EXACT, NATIVE = ENTRIES["exact"], ENTRIES["native"]
TOGETHER = frozenset((EXACT, NATIVE, SEARCH))
"""What is run for many seeds in one process."""
MOST_SECONDS = 600.0
"""What jobs of one process may take, where one alone may not take more."""
MOST_TURNS = 6
"""So often are verifications put off: for a first look, for the exact job, for all else, and where answers of torch's were not kept long enough."""


class PutOff(BaseException):
    """Raised in the place of a job's run, which comes with those of the other seeds. No `Exception`: nothing in between may handle it."""


class Together:
    """A sandbox for the verifications of one candidate. What it gave for a job it gives again, and keeps its files, until it is closed."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner
        self.name = inner.name
        self._asked: dict[str, Job] = {}
        self._given: dict[str, Run] = {}
        self._runs: list[Run] = []
        self._exact: set[tuple[int, int]] = set()
        """What has its exact job, and may want its native one."""
        self._folder = tempfile.TemporaryDirectory(prefix="migrate-agent-seeds-")

    def run(self, job: Job) -> Run:
        """What a job gave. Raises `PutOff` where it is to be run with others."""
        key = _key(job)
        if key not in self._given and job.entry in TOGETHER:
            if job.entry != NATIVE or _form(job) in self._exact:
                self._asked[key] = self._lasting(job, key)
            raise PutOff
        if key not in self._given:
            self._given[key] = self._run(job)
        return self._given[key]

    def forget(self, seed: int) -> None:
        """Run no more of what was put off for this seed: its verification has ended without it."""
        self._asked = {key: job for key, job in self._asked.items() if job.arguments["seed"] != seed}

    def release(self, run: Run) -> None:
        """Nothing: it may be asked for again."""

    def close(self) -> None:
        """Remove the files of all runs."""
        self._folder.cleanup()
        for run in self._runs:
            self._inner.release(run)
        self._runs.clear()

    def run_asked(self) -> None:
        """Run what was put off, all jobs of a kind in one process; each alone where that does not end well."""
        by_entry: dict[str, dict[str, Job]] = {}
        for key, job in self._asked.items():
            by_entry.setdefault(job.entry, {})[key] = job
        self._exact |= {_form(job) for job in by_entry.get(EXACT, {}).values()}
        self._asked = {}
        with ThreadPoolExecutor(2) as pool:
            for found in list(pool.map(self._several, by_entry.values())):
                self._given |= found

    def _lasting(self, job: Job, key: str) -> Job:
        """The job with copies of what its candidate exported, which goes when its verification ends."""
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
        seconds = min(first.limits.seconds * len(jobs), max(first.limits.seconds, MOST_SECONDS))
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
    """The same for a candidate's jobs of one seed that run all its scenarios, not for those that run one."""
    return job.arguments["seed"], len(job.arguments["scenarios"])


def _key(job: Job) -> str:
    """Equal for the same job of the same candidate."""
    exported = sorted(job.inputs[STEP].iterdir()) if STEP in job.inputs else []
    inputs = {name: str(path) for name, path in job.inputs.items() if name != STEP}
    asked = [job.side, job.entry, str(job.root), dict(job.arguments), inputs]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode())
    for path in exported:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def with_seeds(sandbox: Sandbox, seeds: Sequence[int], verify: Callable[[Sandbox, int], Evidence]) -> list[Evidence]:
    """What `verify(sandbox, seed)` gives for each of these seeds; it must verify the same candidate each time, which has nothing to gain by cheating."""
    together = Together(sandbox)
    found: dict[int, Evidence] = {}
    try:
        for _ in range(MOST_TURNS):
            for seed in seeds:
                if seed not in found:
                    with contextlib.suppress(PutOff):
                        found[seed] = verify(together, seed)
                        together.forget(seed)
            if len(found) == len(seeds):
                break
            together.run_asked()
        return [found[seed] if seed in found else verify(sandbox, seed) for seed in seeds]
    finally:
        together.close()
