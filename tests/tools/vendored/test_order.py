"""Elements and places by order are those of torch for NaN of both signs, infinities and equal numbers, and so are their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tools.vendored import plain, tensor_cumulative, tensor_reduction, tensor_sorting

ROWS = {
    "numbers": [0.5, -1.0, 3.0, 2.0, 0.0],
    "NaN": [1.0, np.nan, 3.0, 2.0, 0.0],
    "negative NaN": [1.0, -np.nan, 3.0, 2.0, 0.0],
    "both": [np.nan, 1.0, -np.nan, 3.0, -np.inf],
    "infinities": [np.inf, 1.0, -np.inf, 0.0, -2.0],
    "equal": [2.0, 2.0, 1.0, 1.0, 2.0],
}
Results = Callable[[Any], Any]
SORTED: dict[str, tuple[Results, Results]] = {
    "largest_along_last": (lambda x: torch.topk(x, 3), lambda x: plain.largest_along_last(x, 3)),
    "topk": (lambda x: torch.topk(x, 3), lambda x: tensor_sorting.topk(x, 3)),
    "smallest": (lambda x: torch.topk(x, 3, largest=False), lambda x: tensor_sorting.topk(x, 3, largest=False)),
    "kthvalue": (lambda x: torch.kthvalue(x, 2), lambda x: tensor_reduction.kthvalue(x, 2)),
    "median": (lambda x: torch.median(x, -1), lambda x: tensor_reduction.median_with_indices(x, -1)),
    "nanmedian": (lambda x: torch.nanmedian(x, -1), lambda x: tensor_reduction.nanmedian_with_indices(x, -1)),
}
"""Values and places, of which torch says for equal elements only that they stand there."""
FIRST: dict[str, tuple[Results, Results]] = {
    "sort": (lambda x: torch.sort(x, stable=True), lambda x: tensor_sorting.sort(x)),
    "falling": (lambda x: torch.sort(x, descending=True, stable=True), lambda x: tensor_sorting.sort(x, descending=True)),
    "max": (lambda x: torch.max(x, -1), lambda x: tensor_reduction.max_with_indices(x, -1)),
    "min": (lambda x: torch.min(x, -1), lambda x: tensor_reduction.min_with_indices(x, -1)),
    "cummax": (lambda x: torch.cummax(x, -1), lambda x: tensor_cumulative.cummax(x, -1)),
    "cummin": (lambda x: torch.cummin(x, -1), lambda x: tensor_cumulative.cummin(x, -1)),
    "argsort": (lambda x: (torch.argsort(x, stable=True),), lambda x: (jnp.argsort(x, axis=-1),)),
    "argmax": (lambda x: (torch.argmax(x, -1), torch.argmin(x, -1)), lambda x: (jnp.argmax(x, -1), jnp.argmin(x, -1))),
    "values alone": (lambda x: (torch.sort(x)[0], x.amax(), x.amin()), lambda x: (jnp.sort(x, axis=-1), jnp.max(x), jnp.min(x))),
    "whole median": (
        lambda x: (torch.median(x), torch.nanmedian(x)),
        lambda x: (tensor_reduction.median(x), tensor_reduction.nanmedian(x)),
    ),
    "aminmax": (torch.aminmax, tensor_reduction.aminmax),
}
"""Results that torch defines for equal elements too."""


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("function", [*SORTED, *FIRST])
def test_order_is_that_of_torch(function: str, row: str) -> None:
    original, ours = {**SORTED, **FIRST}[function]
    x = np.array(ROWS[row])
    expected, found = [one.numpy() for one in original(torch.tensor(x))], [np.asarray(one) for one in ours(jnp.asarray(x))]
    if function in SORTED:
        places = found[1]
        np.testing.assert_array_equal(x[places], found[0])
        assert np.unique(places).size == places.size
    pairs = list(zip(found, expected, strict=True))
    for one, other in pairs[:1] if function in SORTED and row in ("equal", "both") else pairs:
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


GRADIENTS: dict[str, tuple[Results, Results]] = {
    "largest": (lambda x: x.topk(2)[0].sum(), lambda x: plain.largest_along_last(x, 2)[0].sum()),
    "median": (torch.median, tensor_reduction.median),
    "nanmedian": (torch.nanmedian, tensor_reduction.nanmedian),
    "cummax": (lambda x: x.cummax(-1)[0].sum(), lambda x: tensor_cumulative.cummax(x, -1)[0].sum()),
    "max": (lambda x: x.max(-1)[0], lambda x: tensor_reduction.max_with_indices(x, -1)[0]),
}


@pytest.mark.parametrize(
    ("function", "row"),
    [(name, row) for name in GRADIENTS for row in ("numbers", "negative NaN", "equal") if (name, row) != ("largest", "equal")],
)
def test_gradients_go_where_those_of_torch_go(function: str, row: str) -> None:
    original, ours = GRADIENTS[function]
    leaf = torch.tensor(ROWS[row], dtype=torch.float64, requires_grad=True)
    original(leaf).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(jax.grad(ours)(jnp.asarray(ROWS[row])), leaf.grad.numpy(), rtol=1e-12)


def test_whole_numbers_have_an_order_too() -> None:
    values, places = plain.largest_along_last(jnp.array([3, 1, 2]), 2)
    assert values.dtype == int and values.tolist() == [3, 2] and places.tolist() == [0, 2]
    assert tensor_reduction.median(jnp.array([3, 1, 2])) == 2
