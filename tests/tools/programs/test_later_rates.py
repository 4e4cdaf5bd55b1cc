"""The rates of torch's schedulers and of their rewrites after a run has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
import torch
from flax import nnx

from migrate_agent.tools.programs.judge import jax_schedules, torch_schedules
from migrate_agent.tools.programs.judge.compare import Pair, Ran, schedules
from migrate_agent.tools.programs.vendored.host_schedules import LambdaLR, ReduceLROnPlateau

LR = torch.optim.lr_scheduler
ROWS: tuple[tuple[Any, Any, Any, str], ...] = (
    (lambda o: LR.StepLR(o, 5), lambda count: 0.1 * 0.1 ** (count // 5), None, "pass"),
    (lambda o: LR.StepLR(o, 5), lambda count: 0.1 * 0.1 ** (count // 6), None, "fail"),
    (lambda o: LR.MultiStepLR(o, [4, 9]), lambda count: 0.1 * 0.1 ** ((count >= 4) + (count >= 9)), None, "pass"),
    (lambda o: LR.MultiStepLR(o, [4, 9]), lambda count: 0.1 * 0.1 ** (count >= 4), None, "fail"),
    (
        lambda o: LR.ChainedScheduler([LR.ExponentialLR(o, 0.9), LR.StepLR(o, 4)]),
        lambda count: 0.1 * 0.9**count * 0.1 ** (count // 4),
        None,
        "pass",
    ),
    (
        lambda o: LR.SequentialLR(o, [LR.ConstantLR(o, 0.5, 10), LR.ExponentialLR(o, 0.9)], [5]),
        lambda count: 0.05 if count < 5 else 0.1 * 0.9 ** (count - 5),
        None,
        "pass",
    ),
    # Past its end, torch's cosine climbs again.
    (lambda o: LR.CosineAnnealingLR(o, 6), lambda count: 0.05 * (1 + jnp.cos(jnp.pi * count / 6)), None, "pass"),
    (lambda o: LR.CosineAnnealingLR(o, 6), optax.cosine_decay_schedule(0.1, 6), None, "fail"),
    (lambda o: LR.LambdaLR(o, lambda n: min(1.0, n / 8)), None, lambda o: LambdaLR(o, lambda n: min(1.0, n / 8)), "pass"),
    (lambda o: LR.LambdaLR(o, lambda n: min(1.0, n / 8)), None, lambda o: LambdaLR(o, lambda n: n / 8), "fail"),
    (lambda o: LR.ReduceLROnPlateau(o, patience=2), None, lambda o: ReduceLROnPlateau(o, patience=2), "pass"),
    (lambda o: LR.ReduceLROnPlateau(o, patience=2), None, lambda o: ReduceLROnPlateau(o, patience=3), "fail"),
    (lambda o: LR.StepLR(o, 5), None, None, "unverified"),
)
"""Torch's scheduler, the schedule of an optax transform or an object on the host, and what the judge says after three steps."""


@pytest.mark.parametrize(("theirs", "schedule", "host", "status"), ROWS)
def test_a_course_that_the_run_does_not_see(theirs: Callable[[Any], Any], schedule: Any, host: Any, status: str) -> None:
    """Is compared to twice its length."""
    with jax.enable_x64(True):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        scheduler = theirs(optimizer)
        optimizer.step()
        model = nnx.Linear(1, 1, rngs=nnx.Rngs(0))
        made = host and host(nnx.Optimizer(model, optax.inject_hyperparams(optax.sgd)(learning_rate=0.1), wrt=nnx.Param))
        metric = [1.0] if hasattr(scheduler, "patience") else []
        for _ in range(3):
            scheduler.step(*metric)
            if made is not None:
                made.step(*metric)
        rows = torch_schedules.later_rates([scheduler])
        asked = [{**row, "rates": len(row["rates"])} for row in rows]
        ours = jax_schedules.later_rates([schedule] if schedule else [], [made] if made else [], asked, 3)
    original = Ran({"schedules": rows}, {})
    pair = Pair(original, original, Ran({"schedules": ours}, {}))
    assert schedules(pair).status == status


def test_a_course_that_the_run_sees_to_its_end() -> None:
    """Is not looked at again."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = LR.MultiStepLR(optimizer, [1, 2])
    optimizer.step()
    for _ in range(3):
        scheduler.step()
    assert torch_schedules.later_rates([scheduler]) == []


def test_once_an_epoch() -> None:
    """A schedule that counts updates is looked at once for each epoch."""
    rows = [{"count": 2, "rates": 2, "metric": None}]
    (found,) = jax_schedules.later_rates([lambda count: count // 5], [], rows, 10)
    assert [3.0, 4.0] in found
