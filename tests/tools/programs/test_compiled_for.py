"""What a step may be compiled for once more, and what not."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from migrate_agent.tools.programs.judge.candidate import compiled_for, outermost_trace
from migrate_agent.tools.programs.judge.compare import Pair, Ran, compiled_once


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.zeros(3), np.ones(3), True),
        (np.zeros(3), np.zeros(4), False),
        (np.zeros(3), np.zeros(3, np.float32), False),
        (True, False, False),
        ("train", "test", False),
        (3, 4, True),
        (0.1, 0.2, True),
        (1, True, False),
    ],
)
def test_a_number_of_the_step_is_no_reason(one: Any, other: Any, same: bool) -> None:
    assert (compiled_for(one) == compiled_for(other)) is same


def test_gradients_of_one_program_share_its_outermost_trace() -> None:
    """Parts of a batch may be unrolled or scanned over; a second shape is a second program."""
    seen: list[tuple[str, Any]] = []

    def note(name: str) -> None:
        seen.append((name, outermost_trace()))

    def loss(x: Any) -> Any:
        note("loss")
        return (x**2).sum()

    @jax.jit
    def step(rows: Any) -> Any:
        note("step")

        def part(total: Any, row: Any) -> Any:
            return total + jax.grad(loss)(row), None

        return jax.lax.scan(part, jnp.zeros(3), rows)[0]

    step(jnp.ones((4, 3)))
    first = {id(trace) for _, trace in seen}
    step(jnp.ones((5, 3)))
    assert outermost_trace() is None
    assert len(first) == 1
    assert len({id(trace) for _, trace in seen}) == 2
    assert {name for name, _ in seen} == {"step", "loss"}


@pytest.mark.parametrize(
    ("traces", "status"),
    [
        ([(0, "loss[x]"), (0, "loss[x]")], "pass"),
        ([(0, "loss[x]"), (1, "loss[x]")], "fail"),
        ([(0, "loss[x]"), (1, "loss[y]")], "pass"),
    ],
)
def test_a_program_is_compiled_once(traces: list[tuple[int, str]], status: str) -> None:
    ran = Ran({"compiled": traces, "eager": 0}, {})
    pair = Pair(ran, ran, ran)
    assert compiled_once(pair, pair).status == status
