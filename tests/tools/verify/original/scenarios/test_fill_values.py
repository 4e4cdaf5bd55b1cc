"""Inputs at which hidden numbers of the original have an effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from migrate_agent.tools.harness.common import input_sampling
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.verify.original.outputs import tipped
from migrate_agent.tools.verify.original.scenarios import fill_values

FILLED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "masked_fill": lambda scores, masked: scores.masked_fill(masked, -1e4),
    "mul": lambda scores, masked: scores + masked.double() * -1e4,
    "scalar_tensor": lambda scores, masked: torch.where(masked, -1e4, scores),
}


@pytest.mark.parametrize("name", FILLED)
def test_inputs_reach_numbers_that_decide_nothing(name: str) -> None:
    masked = torch.eye(6, dtype=torch.bool).logical_not()
    masked[:, 0] = False

    def run(seed: int, values: Sequence[input_sampling.Array], watch: fill_values.Numbers | None) -> Result:
        x = torch.from_numpy(values[0])
        with watch or nullcontext():
            weights = FILLED[name](x @ x.T * -12.0, masked).softmax(-1)
            return Result({"out/0": weights.numpy(), "out/1": (x + 1e5).numpy(), "out/2": (x * 1e3).numpy()})

    leaf = input_sampling.Leaf(np.random.default_rng(0).standard_normal((6, 4)), "float32")
    assert fill_values.hidden(run, [leaf.value]) == [(name, -1e4)]
    found = fill_values.reaching(run, [leaf], {0: [leaf.value]}, (name, -1e4))
    assert found is not None and fill_values.reaching(run, [leaf], {0: [leaf.value]}, (name, -3e4)) is None
    for (values,), factor in zip(found[1], fill_values.FACTORS, strict=True):
        assert tipped(run(0, [values], None), [run(0, [values], fill_values.Numbers((name, -1e4), factor))])
