"""A function seen as a module: signatures, held arguments, and calls on torch's side."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest
import torch

from migrate_agent.tools.harness.common.function_calls import held_names, method_signature, own_parameters, whole_call
from migrate_agent.tools.harness.common.function_module import function_module
from migrate_agent.tools.harness.common.inner_gradients import asks_gradients
from migrate_agent.tools.harness.common.signatures import describe


def scale(net: Any, x: Any, factor: float = 2.0, *rest: Any, shift: float = 0.0) -> Any:
    return net(x) * factor + shift + sum(rest)


def slope(x: Any) -> Any:
    return torch.autograd.grad((x**2).sum(), x)[0]


def test_held_arguments_are_named() -> None:
    assert held_names("net=torch.nn.Linear(2, 2), shift=1.0, rngs=rngs") == ("net", "shift")
    assert held_names("") == ()


def test_a_port_loses_its_rngs() -> None:
    def port(x: Any, *, rngs: Any) -> Any:
        return x, rngs

    assert [item.name for item in own_parameters(port, port=True)] == ["x"]
    assert [item.name for item in own_parameters(port)] == ["x", "rngs"]


def test_the_call_has_what_is_not_held() -> None:
    assert str(method_signature(own_parameters(scale), ("net",))).startswith("(self, x: 'Any', factor: 'float' = 2.0")


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((1,), {}, ((abs, 1), {})),
        ((1, 3.0), {"shift": 1.0}, ((abs, 1, 3.0), {"shift": 1.0})),
        ((), {"x": 1, "factor": 2.0}, ((abs, 1, 2.0), {})),
        ((1, 2.0, 5, 6), {}, ((abs, 1, 2.0, 5, 6), {})),
    ],
)
def test_held_arguments_take_their_places(args: tuple[Any, ...], kwargs: dict[str, Any], expected: tuple[Any, Any]) -> None:
    assert whole_call(own_parameters(scale), {"net": abs}, args, kwargs) == expected


def test_a_function_is_a_module() -> None:
    cls: Any = function_module(scale, ("net",))
    unit = cls(net=torch.nn.Linear(2, 2))
    assert sorted(unit.state_dict()) == ["net.bias", "net.weight"]
    x = torch.ones(3, 2)
    assert torch.equal(unit(x, 3.0), unit.net(x) * 3.0)
    assert (cls.__name__, cls.__module__, inspect.getfile(cls)) == ("scale", __name__, sys.modules[__name__].__file__)


def test_held_arguments_count_in_the_signature() -> None:
    described = describe(function_module(scale, ("net",)), "forward", torch.nn.Module)
    assert described is not None
    assert [item["name"] for item in described] == ["net", "x", "factor", "rest", "shift"]


def test_code_that_asks_for_gradients_is_seen() -> None:
    assert asks_gradients(function_module(slope))
    assert not asks_gradients(torch.nn.Linear)
