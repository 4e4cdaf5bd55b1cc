"""Optimiser steps in numpy are torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.common.training_steps import NumpyOptimiser


@pytest.mark.parametrize("imaginary", [0, 1j], ids=["real", "complex"])
@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_optimisers_are_torchs(kind: str, imaginary: complex) -> None:
    draws = np.random.default_rng(0).standard_normal((2, 3, 4))
    start = draws[0] + imaginary * draws[1] if imaginary else draws[0]
    theirs = torch.nn.Parameter(torch.from_numpy(start.copy()))
    settings: dict[str, Any] = {"lr": 0.05}
    if kind == "sgd":
        step: Any = torch.optim.SGD([theirs], momentum=budgets.MOMENTUM, **settings)
    else:
        step = torch.optim.AdamW([theirs], betas=budgets.BETAS, eps=budgets.ADAM_EPSILON, weight_decay=budgets.WEIGHT_DECAY, **settings)
    ours, rule = start, NumpyOptimiser(kind, 0.05, 1)
    for _ in range(4):
        theirs.grad = 2 * theirs.detach()
        step.step()
        (ours,) = rule.step([ours], [2 * ours])
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-13)
