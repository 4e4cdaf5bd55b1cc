"""Type promotion, table-driven: dtypes (and values of integer division) of rewritten arithmetic against torch's."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.evals.operators.mirror import Source, load_mirror, rewrite

DTYPES = (torch.bool, torch.uint8, torch.int32, torch.bfloat16, torch.float16, torch.float32)
BINARY = ("x0 + x1", "x0 * x1", "x0 / x1", "x0 // x1", "x0 % x1", "x0 == x1", "torch.maximum(x0, x1)", "torch.where(x0 == x0, x0, x1)")
UNARY = (
    "x0 + True",
    "x0 + 2",
    "2 * x0",
    "x0 + 2.5",
    "x0 / 2",
    "2 / x0",
    "x0 // 2",
    "x0 % 2.5",
    "x0 ** 2.5",
    "x0.sum()",
    "x0.cumsum(0)",
    "x0.mean()",
    "x0.sqrt()",
    "torch.where(x0 == x0, x0, 2.5)",
    "x0.masked_fill(x0 == x0, 2.5)",
    "torch.full_like(x0, 2)",
    "torch.sigmoid(x0)",
    "torch.clamp(x0, 0, 1.5)",
)
NARROW = {"int64": "int32", "uint64": "uint32"}
"""JAX's 32-bit mode: what torch has in 64 bits and JAX in 32."""

Call = tuple[str, tuple[torch.Tensor, ...]]


def calls() -> list[Call]:
    """Every expression with every pair of dtypes, the second operand with and without axes; those that torch runs."""
    pairs = itertools.product(BINARY, DTYPES, DTYPES, ((3,), ()))
    found: list[Call] = [(text, (torch.ones(3, dtype=a), torch.ones(shape, dtype=b))) for text, a, b, shape in pairs]
    found += [(text, (torch.ones(3, dtype=dtype),)) for text, dtype in itertools.product(UNARY, DTYPES)]
    return [call for call in found if evaluate(*call) is not None]


def evaluate(text: str, tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """What torch gives; None where it refuses."""
    names: Mapping[str, Any] = {"torch": torch, **{f"x{i}": tensor for i, tensor in enumerate(tensors)}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result: torch.Tensor = eval(text, dict(names))
        except RuntimeError:
            return None
    return result


def rewritten(wanted: Sequence[Call], folder: Path) -> list[Any]:
    """The calls as functions, rewritten in one file with their arguments observed."""
    sources = []
    for index, (text, tensors) in enumerate(wanted):
        names = {f"x{i}": tensor for i, tensor in enumerate(tensors)}
        sources.append(Source(f"def f{index}({', '.join(names)}):\n    return {text}\n", names))
    holes, _ = rewrite(sources, folder)
    assert not any(holes)
    mirror = load_mirror(folder)
    return [getattr(mirror, f"f{index}") for index in range(len(wanted))]


def shape(tensor: torch.Tensor) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(tensor.shape), jnp.dtype(str(tensor.dtype).removeprefix("torch.")))  # type: ignore[no-untyped-call]


@pytest.mark.ci
def test_dtypes(tmp_path: Path) -> None:
    wanted = calls()
    assert len(wanted) > 500
    wrong = []
    for (text, tensors), function in zip(wanted, rewritten(wanted, tmp_path), strict=True):
        result = evaluate(text, tensors)
        assert result is not None
        expected = str(result.dtype).removeprefix("torch.")
        got = str(jax.eval_shape(function, *map(shape, tensors)).dtype)
        if got != NARROW.get(expected, expected):
            wrong.append(f"{text} of {[(str(t.dtype), t.ndim) for t in tensors]}: {got}, torch gives {expected}")
    assert not wrong, "\n".join(wrong)


DIVISIONS = (
    "x0 // x1",
    "x0 % x1",
    "torch.remainder(x0, x1)",
    "torch.fmod(x0, x1)",
    "torch.floor_divide(x0, x1)",
    "torch.div(x0, x1, rounding_mode='floor')",
    "torch.div(x0, x1, rounding_mode='trunc')",
    "x0 // -3",
    "x0 % -3",
)


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
def test_division_of_negatives(dtype: torch.dtype, tmp_path: Path) -> None:
    x, y = (torch.tensor(values, dtype=dtype) for values in ([-7, -6, -1, 0, 5, 7, 8], [3, -3, 2, -5, -2, 7, -3]))
    wanted = [(text, (x, y)) for text in DIVISIONS]
    for (text, tensors), function in zip(wanted, rewritten(wanted, tmp_path), strict=True):
        expected = evaluate(text, tensors)
        assert expected is not None
        np.testing.assert_array_equal(np.asarray(function(*(jnp.asarray(t.numpy()) for t in tensors))), expected.numpy(), err_msg=text)
