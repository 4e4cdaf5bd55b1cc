"""Many seeds of one candidate: jobs that are run together give the verdicts that each gives alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from migrate_agent.evals.mutation import corpus
from migrate_agent.evals.mutation.seeds import SEVERAL, with_seeds
from migrate_agent.sandbox import open_sandbox
from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.types import Evidence, Job, Run
from migrate_agent.tools.verify import Options

pytestmark = pytest.mark.slow

SEEDS = (1, 2)
EXACT = frozenset(("state_names", "forward_fp64", "gradients_parameters", "gradients_inputs", "buffers", "dropout", "initial_values"))
"""Checks whose figures are the same however the candidate is run."""


class Counted:
    """A sandbox that notes what it was asked to run."""

    name = "process"

    def __init__(self, inner: Sandbox) -> None:
        self.inner = inner
        self.entries: list[str] = []

    def run(self, job: Job) -> Run:
        self.entries.append(job.entry)
        return self.inner.run(job)

    def release(self, run: Run) -> None:
        self.inner.release(run)

    def close(self) -> None:
        self.inner.close()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Counted]:
    with closing(Counted(open_sandbox("process", warn=lambda text: None))) as opened:
        yield opened


def told(evidence: Evidence) -> list[tuple[str, str, float | None]]:
    return [(verdict.check, verdict.status, verdict.measured if verdict.check in EXACT else None) for verdict in evidence.verdicts]


def both(sandbox: Counted, original: str, text: str, folder: Path) -> tuple[list[Evidence], list[Evidence], list[str]]:
    """What is found together, what is found alone, and what was run for the former."""

    def verify(given: Sandbox, seed: int) -> Evidence:
        return corpus.verify_case(corpus.load_originals()[original], text, given, folder, Options(localise=False, seed=seed))

    before = len(sandbox.entries)
    together = with_seeds(sandbox, SEEDS, verify)
    asked = sandbox.entries[before:]
    return together, [verify(sandbox, seed) for seed in SEEDS], asked


@pytest.mark.parametrize("case", ["right/dropout", "wrong/integers_atan2_of_zero", "wrong/integers_bool_as_int"])
def test_verdicts_are_those_of_seeds_alone(case: str, sandbox: Counted, tmp_path: Path) -> None:
    found = next(each for each in corpus.load_cases() if each.id == case)
    together, alone, asked = both(sandbox, found.original, found.source, tmp_path)
    assert [told(evidence) for evidence in together] == [told(evidence) for evidence in alone]
    assert {evidence.status for evidence in together} == {"verified" if found.kind == "right" else "failed"}
    assert SEVERAL in asked and not any(entry.endswith((":exact", ":native", "adversarial_search:run")) for entry in asked)


class Crashing(Counted):
    """In the place of a sandbox whose process dies wherever several jobs share it: no candidate that passes the static checks is sure to do that."""

    def run(self, job: Job) -> Run:
        return replace(super().run(job), status="crash") if job.entry == SEVERAL else super().run(job)


def test_jobs_whose_common_process_dies_are_run_alone(sandbox: Counted, tmp_path: Path) -> None:
    right = next(each for each in corpus.load_cases() if each.id == "right/integers").source
    together, alone, asked = both(Crashing(sandbox.inner), "integers", right, tmp_path)
    assert [told(evidence) for evidence in together] == [told(evidence) for evidence in alone]
    assert SEVERAL in asked and sum(entry.endswith(":exact") for entry in asked) == 2 * len(SEEDS)
