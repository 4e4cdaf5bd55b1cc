"""What the suites judge by can fail: wrong results, wrong gradients, wrong shapes and untidy files are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.evals.operators.op_run import check
from migrate_agent.evals.operators.op_source import Call, Unspelled, Writer, calls, observe, torch_result
from migrate_agent.evals.operators.parity import Difference, compare, compare_modules
from migrate_agent.evals.zoo_packages.tidiness import static_problems
from migrate_agent.tools.types import Span


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True):
        yield
    torch.set_default_dtype(torch.float32)


def call(body: str, *tensors: torch.Tensor) -> Call:
    return Call("entry", "function", "float64", f"    return {body}\n", tensors, True)


def number(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jnp.tanh(x) + 1e-7, "result 0: off by"),
        (lambda x: jnp.tanh(jax.lax.stop_gradient(x)), "gradient 0"),
        (lambda x: jnp.tanh(x)[None], "shape"),
        (lambda x: jnp.tanh(x).astype(jnp.float32), "dtype"),
        (lambda x: (jnp.tanh(x), x), "2 results"),
        (lambda x: jnp.where(x > 0, jnp.nan, jnp.tanh(x)), "NaN or infinities"),
    ],
)
def test_wrong_calls_are_seen(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(Difference, match=message):
        check(call("torch.tanh(x0)", number(0.5, -1.0)), function)


def test_right_call_passes() -> None:
    check(call("torch.tanh(x0)", number(0.5, -1.0)), jnp.tanh)


@pytest.mark.parametrize("value", [jnp.array([1.0, 2.0]), jnp.array([1.0, jnp.inf]), jnp.array([[1.0, 3.0]])])
def test_compare_sees_differences(value: Any) -> None:
    with pytest.raises(Difference):
        compare("x", value, np.array([1.0, 3.0]))


class Scaled(nnx.Module):
    """Like `torch.nn.Linear(2, 2, bias=False)`, times `scale`."""

    def __init__(self, scale: float, detached: bool = False) -> None:
        self.weight = nnx.Param(jnp.zeros((2, 2)))
        self.scale, self.detached = scale, detached

    def __call__(self, x: jax.Array) -> jax.Array:
        weight = self.weight[...]
        return x @ (jax.lax.stop_gradient(weight) if self.detached else weight).T * self.scale


@pytest.mark.parametrize(
    ("rewrite", "message"),
    [(Scaled(1.0), ""), (Scaled(1.001), "output 0"), (Scaled(1.0, detached=True), "gradient of weight")],
)
def test_modules_are_compared(rewrite: nnx.Module, message: str) -> None:
    original = torch.nn.Linear(2, 2, bias=False)
    if not message:
        compare_modules(original, rewrite, [torch.ones(3, 2)], {})
        return
    with pytest.raises(Difference, match=message):
        compare_modules(original, rewrite, [torch.ones(3, 2)], {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, 2.5, "a", None, True), "(1, 2.5, 'a', None, True)"),
        ([torch.ones(1), (torch.ones(2),)], "[x0, (x1,)]"),
        (float("-inf"), "float('-inf')"),
        (slice(1, None, 2), "slice(1, None, 2)"),
        (torch.float32, "torch.float32"),
        (torch.device("cpu"), "'cpu'"),
    ],
)
def test_values_are_written(value: Any, text: str) -> None:
    assert Writer().write(value) == text


def test_what_has_no_text_is_said() -> None:
    with pytest.raises(Unspelled, match="function"):
        Writer().write(lambda: 0)


def test_every_spelling_is_written() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    (entry,) = (entry for entry in op_db if entry.name == "sub")
    found = [item for item in calls(entry, 1) if isinstance(item, Call)]
    assert {item.spelling for item in found} == {"function", "method", "in-place", "operator"}
    assert all(isinstance(torch_result(item), torch.Tensor) for item in found)


def test_uses_of_arguments_are_observed() -> None:
    text = "def f(x0):\n    return torch.exp(x0)\n"
    assert observe(text, {"f": {"x0": torch.ones(2, 3)}})[Span(2, 21, 2, 23)].shapes == ((2, 3),)


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("import jax\n\n\ndef f(x):\n    return jax.nn.relu(x)\n", "", []),
        ("import torch\n", "", ["a.py:1: F401 `torch` imported but unused", "a.py:1: imports torch"]),
        ("def f(x):\n    return torch.relu(x)\n", "", ["a.py:2: torch is left"]),
        ("def f(x):\n    y = x\n", "def f(x):\n    y = x\n", []),
        ("def f(x):\n    y = x\n", "", ["a.py:2: F841 Local variable `y` is assigned to but never used"]),
        ("def f(:\n", "", ["does not parse"]),
    ],
)
def test_untidy_files_are_seen(text: str, source: str, expected: list[str]) -> None:
    found = static_problems({"a.py": text}, {"a.py": source})
    assert len(found) >= len(expected)
    assert all(any(wanted in line for line in found) for wanted in expected)
    assert bool(found) == bool(expected)
