"""Copies of the original's module."""

from __future__ import annotations

import copy
import threading
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from migrate_agent.tools.harness.torch_side.module import LARGE_PARAMETER, Original, _shared, copied


def test_functions_that_a_module_keeps_hold_its_copy() -> None:
    module: Any = torch.nn.Linear(2, 2)

    def twice(x: torch.Tensor) -> Any:
        return 2 * module(x)

    module.twice, module.table = twice, {"twice": twice}
    made: Any = copied(module)
    torch.nn.init.zeros_(made.weight)
    torch.nn.init.zeros_(made.bias)
    assert not made.twice(torch.ones(2)).any() and not made.table["twice"](torch.ones(2)).any()


def test_a_module_whose_weight_a_hook_computes_is_copied() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        module = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    module(torch.ones(1, 3))
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(module)
    twin: Any = copied(module)
    with torch.no_grad():
        twin.weight_g.mul_(2)
    torch.testing.assert_close(twin(torch.ones(1, 3)) - twin.bias, 2 * (module(torch.ones(1, 3)) - module.bias))


def test_what_cannot_be_copied_is_held_by_both() -> None:
    module: Any = torch.nn.Sequential(torch.nn.Linear(2, 2))
    module.twice, module.table, module[0].lock = staticmethod(torch.ones_like), {"lock": threading.Lock()}, threading.Lock()
    with pytest.raises(TypeError, match="pickle"):
        copy.deepcopy(module)
    twin: Any = copied(module)
    assert (twin.twice, twin.table, twin[0].lock) == (module.twice, module.table, module[0].lock)
    assert twin.table is not module.table and twin[0].weight is not module[0].weight


@pytest.mark.parametrize(
    "value", [np.float64(0.5), np.array(0.5), np.arange(4.0)[::-1], np.broadcast_to(np.array(0.5), (3,)), np.arange(3)]
)
def test_an_array_is_read_as_a_tensor_without_a_warning(value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = _shared(value)
    assert np.array_equal(tensor.numpy(), value) and tensor.dtype == torch.as_tensor(np.array(value)).dtype


WIDE = 2 * LARGE_PARAMETER
"""Columns of a large parameter."""


class Wide(torch.nn.Module):
    """A large parameter that a second name shares, one that is frozen, and a small one."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(WIDE, 1), torch.nn.Linear(WIDE, 1)
        self.two.weight = self.one.weight
        self.frozen = torch.nn.Parameter(torch.randn(WIDE, dtype=torch.float64).view(2, -1).t(), requires_grad=False)

    def forward(self, x: torch.Tensor) -> Any:
        return self.one(x) + self.two(x) + self.frozen.sum()


def wide_unit() -> Original:
    return Original(__name__, "Wide", {"init": "", "setup": "import torch", "call": f"torch.ones(2, {WIDE})"}, None)


def test_a_copy_has_parameters_of_the_same_kinds() -> None:
    module = Wide()
    made: Any = copied(module)
    for (name, ours), (other, theirs) in zip(made.named_parameters(), module.named_parameters(), strict=True):
        assert (name, ours.requires_grad, ours.stride(), ours.dtype) == (other, theirs.requires_grad, theirs.stride(), theirs.dtype)
        assert ours is not theirs
    assert made.one.weight is made.two.weight


@pytest.mark.parametrize("native", [False, True])
def test_a_module_has_the_numbers_of_its_state(native: bool) -> None:
    unit = wide_unit()
    state = {name: value + 1 for name, value in unit.state().items()}
    made = unit.module(state, "eval", native=native)
    for name, value in made.state_dict().items():
        np.testing.assert_allclose(value.numpy(), state[name], rtol=1e-6)


def test_a_state_is_read_once_while_it_stays() -> None:
    unit = wide_unit()
    state = unit.state()
    assert unit.state()["one.weight"] is state["one.weight"] and not state["one.weight"].flags.writeable
    unit.run(state, [np.ones((2, WIDE))], "eval")
    assert unit.state()["one.weight"] is state["one.weight"]
    with torch.no_grad():
        unit.exact.one.weight.add_(1)
    np.testing.assert_array_equal(unit.state()["one.weight"], unit.exact.one.weight.detach().numpy())
    assert unit.state()["one.weight"] is not state["one.weight"]


def test_what_hangs_on_a_parameter_is_copied_with_it() -> None:
    module = torch.nn.Linear(2, 2)
    marks: Any = module.weight
    marks.fast, marks.mask = None, torch.ones(2, 2)
    clone: Any = copied(module).weight
    assert clone.fast is None and torch.equal(clone.mask, marks.mask) and clone.mask is not marks.mask
