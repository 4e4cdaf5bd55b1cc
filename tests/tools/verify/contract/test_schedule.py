"""Large units: what must run comes first and is never left out; a process is believed that it had no time only where it took that time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.tools.verify.harness import Pair, check_pair, told
from migrate_agent.tests.tools.verify.pairs_layers import LINEAR
from migrate_agent.tools.harness.common.random_streams import Drawing
from migrate_agent.tools.types import Job, Limits, Run
from migrate_agent.tools.verify.contract.scenario import Request, Role
from migrate_agent.tools.verify.contract.schedule import (
    FULL,
    LARGE_ELEMENTS,
    LARGE_SECONDS,
    LATE,
    ORDER,
    SEARCH,
    Deadline,
    in_order,
    is_large,
    longer,
    required,
)
from migrate_agent.tools.verify.evidence.candidate import CandidateRun, Results

WIDE = Pair(
    "wide",
    """
    class M(nn.Module):
        def __init__(self, width=1100):
            super().__init__()
            self.first = nn.Linear(4, width)
            self.norm = nn.LayerNorm(width)
            self.last = nn.Linear(width, width)

        def forward(self, x):
            return self.last(torch.relu(self.norm(self.first(x))))
    """,
    LINEAR
    + """
class M(nnx.Module):
    def __init__(self, width=1100, *, rngs):
        self.first = linear(4, width, rngs)
        self.norm = nnx.LayerNorm(width, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
        self.last = linear(width, width, rngs)

    def __call__(self, x):
        return self.last(jax.nn.relu(self.norm(self.first(x))))
""",
    call="torch.randn(5, 4)",
)
"""A unit of 1.2 million parameters."""
LONG = Pair(
    "long",
    """
    class M(nn.Module):
        def forward(self, x):
            return torch.tanh(x).sum(1)
    """,
    """
class M(nnx.Module):
    def __init__(self, *, rngs):
        pass

    def __call__(self, x):
        return jnp.tanh(x).sum(1)
""",
    call="torch.randn(3, 200_000)",
)
"""A unit whose inputs fill a small disk: 5 MB each."""


def call(role: Role, name: str = "", seed: int = 0, **fields: Any) -> Request:
    """A call of this role on the state of this seed."""
    return Request(name=name or str(role), role=role, state=f"e0-s{seed}", **fields)


@pytest.mark.parametrize(
    ("elements", "seconds", "large"),
    [(LARGE_ELEMENTS, 0.0, True), (10, LARGE_SECONDS, True), (LARGE_ELEMENTS - 1, LARGE_SECONDS / 2, False)],
)
def test_a_unit_is_large_by_its_elements_or_its_seconds(elements: int, seconds: float, large: bool) -> None:
    assert is_large(elements, seconds) == large


def test_a_unit_is_large_from_fewer_elements_where_that_is_asked() -> None:
    assert is_large(10, 0.0, least=10)
    assert not is_large(9, 0.0, least=10)


def test_each_role_has_a_place_in_the_order() -> None:
    assert set(ORDER) == set(Role)


def test_first_passes_and_what_is_needed_come_first() -> None:
    calls = [
        call(Role.SHAPE, native=True),
        call(Role.SEED, "eval-s1", 1),
        call(Role.GRADIENT, "gradient-s1", 1, gradient=True),
        call(Role.GRADIENT, "tilted", drawing=Drawing("low")),
        call(Role.SEED, "eval-s0"),
        call(Role.EDGE),
        call(Role.GRADIENT, "gradient-s0", gradient=True),
    ]
    names = [item.name for item in in_order(calls, ("gradient-s1",))]
    assert names == ["gradient-s1", "eval-s0", "gradient-s0", "eval-s1", "edge", "tilted", "shape"]
    assert not required(calls[3])


def test_a_deadline_passes_only_where_there_is_one() -> None:
    assert not Deadline(began=0.0).passed
    assert not Deadline(1e-9, small=True, began=0.0).passed
    assert Deadline(1e-9, began=0.0).passed
    assert not Deadline(1e9).passed


def test_a_call_that_would_end_long_after_the_deadline_is_not_begun() -> None:
    deadline = Deadline(1e6)
    deadline.note(deadline.began - 4e6)
    assert deadline.passed


def test_what_may_not_fit_is_not_written() -> None:
    assert not Deadline().full
    deadline = Deadline(room=100)
    deadline.wrote(40)
    assert not deadline.full
    deadline.wrote(30)
    assert deadline.full


def test_inputs_that_fill_the_disk_are_left_out_with_a_note(tmp_path: Path) -> None:
    with ProcessSandbox() as sandbox:
        evidence = check_pair(LONG, LONG.candidate(), sandbox, tmp_path, file_bytes=80 * 2**20)
    assert evidence.status == "verified", told(evidence)
    assert any(FULL in note for note in evidence.notes)


def test_jobs_of_large_units_may_take_longer() -> None:
    assert longer(Limits(seconds=10.0), 100.0).seconds >= 110.0
    assert longer(Limits(seconds=10.0), 0.0) == Limits(seconds=10.0)


def results(left: list[str], seconds: float, answered: tuple[str, ...] = ("eval-s0",)) -> Results:
    """Results of a large unit whose exact job says that it left this out."""
    calls = [call(Role.SEED, "eval-s0"), call(Role.EDGE, "edge-zeros")]
    made = object.__new__(Results)
    made.budget, made.looked_only, made.port = 100.0, False, None
    made.original = SimpleNamespace(large=True, scenarios=calls, examples=[{}])  # type: ignore[assignment]
    made.runs = {"exact": CandidateRun({"scenarios": {name: {} for name in answered}, "left": left}, {}, {}, seconds)}
    return made


@pytest.mark.parametrize(
    ("left", "seconds", "believed", "missing"),
    [
        (["edge-zeros", SEARCH], 90.0, {"edge-zeros", SEARCH}, []),
        (["edge-zeros", SEARCH], 3.0, set(), ["edge-zeros"]),
        (["edge-zeros", "eval-s0", "no such"], 90.0, {"edge-zeros"}, []),
        ([], 90.0, set(), ["edge-zeros"]),
    ],
)
def test_a_process_is_believed_where_it_took_the_time(left: list[str], seconds: float, believed: set[str], missing: list[str]) -> None:
    made = results(left, seconds)
    assert made.left_out() == believed
    assert made.unanswered() == missing


def test_what_must_run_is_never_left_out() -> None:
    assert results(["eval-s0"], 90.0, ("edge-zeros",)).unanswered() == ["eval-s0"]


class Scale:
    """A sandbox that weighs what a candidate exported for the search."""

    name = "scale"

    def __init__(self, inner: ProcessSandbox) -> None:
        self.inner = inner
        self.weight = 0

    def run(self, job: Job) -> Run:
        """Weigh and run."""
        if "step" in job.inputs:
            self.weight = sum(path.stat().st_size for path in job.inputs["step"].iterdir())
        return self.inner.run(job)

    def release(self, run: Run) -> None:
        """As the real one."""
        self.inner.release(run)

    def close(self) -> None:
        """Nothing of its own."""


@pytest.mark.ci
def test_a_large_unit_is_judged_with_and_without_time(tmp_path: Path) -> None:
    wrong = WIDE.jax.replace("jax.nn.relu(self", "jnp.abs(self")
    with ProcessSandbox() as sandbox:
        scale = Scale(sandbox)
        whole = check_pair(WIDE, WIDE.candidate(), scale, tmp_path / "whole", budget=1e4)
        short = check_pair(WIDE, WIDE.candidate(), sandbox, tmp_path / "short", budget=1e-3)
        refused = check_pair(replace(WIDE, jax=wrong), replace(WIDE, jax=wrong).candidate(), sandbox, tmp_path / "wrong", budget=1e-3)
    assert whole.status == "verified", told(whole)
    assert "worst_input" in {verdict.check for verdict in whole.verdicts}
    assert 0 < scale.weight < 100_000, "the exported step holds no large array that the original's side has"
    assert not any(LATE in note for note in whole.notes)
    assert short.status == "verified", told(short)
    assert any(LATE in note and "edges" in note for note in short.notes)
    assert {v.check for v in short.verdicts} < {v.check for v in whole.verdicts}
    assert {"forward_fp64", "gradients_parameters", "curves_fp64", "reach"} <= {v.check for v in short.verdicts}
    assert refused.status == "failed", told(refused)
