"""How the original is run: tensors that an example gives, rounding noise at saturation, draws that ties decide."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch

from migrate_agent.tools.harness.common.random_streams import Stream
from migrate_agent.tools.harness.torch_side.precision import LiftFunctions, PairedDraws, Undefined, wide_names
from migrate_agent.tools.harness.torch_side.rounding import RoundingNoise


def test_tensors_of_an_example_are_wide_and_those_of_its_module_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("given")
    module.table = torch.ones(2)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "given", module)
    weight = torch.nn.Parameter(torch.ones(2))
    namespace = {
        **vars(module),
        "bins": [torch.ones(2), (torch.ones(2, dtype=torch.complex64), 3)],
        "weight": weight,
        "ids": torch.arange(2),
    }
    wide = wide_names(namespace, "given")
    assert wide["table"] is module.table and wide["weight"] is weight
    assert wide["bins"][0].dtype == torch.float64 and wide["bins"][1][0].dtype == torch.complex128 and wide["bins"][1][1] == 3
    assert wide["ids"].dtype == torch.int64


@pytest.mark.parametrize(
    ("values", "function", "moves"),
    [
        ([40.0, -40.0], torch.tanh, True),
        ([40.0, 50.0], torch.sigmoid, True),
        ([40.0, -40.0], torch.Tensor.tanh_, True),
        ([2.0, 3.0], torch.square, False),
        ([2.5, 3.5], torch.round, False),
    ],
)
def test_what_saturation_leaves_is_rounded(values: list[float], function: object, moves: bool) -> None:
    assert callable(function)
    plain = function(torch.tensor(values, dtype=torch.float64))
    assert torch.equal(plain, plain.round())
    with RoundingNoise(0):
        noisy = function(torch.tensor(values, dtype=torch.float64))
    assert torch.equal(plain, noisy) is not moves
    assert torch.allclose(plain, noisy, rtol=1e-15)


@pytest.mark.parametrize(
    ("weights", "count", "tied"),
    [([0.5, 0.3, 0.2], 2, False), ([1.0, 0.0, 0.0], 2, True), ([1.0, 1e-310, 0.0], 2, True), ([1.0, 0.0, 0.0], 1, False)],
)
def test_weights_that_vanish_are_tied(weights: list[float], count: int, tied: bool) -> None:
    with PairedDraws(Stream(0)) as mode:
        torch.multinomial(torch.tensor(weights, dtype=torch.float64), count)
    assert mode.stream.tied is tied


@pytest.mark.parametrize(("factor", "expected"), [(1.0, False), (0.0, True), (np.nan, False)])
def test_operators_that_make_nan_are_noticed(factor: float, expected: bool) -> None:
    infinite, mode = torch.tensor([1.0, np.inf]), Undefined()
    with mode:
        assert (infinite * factor).numel() == 2
    assert mode.seen == expected


@pytest.mark.parametrize(
    ("values", "k", "tied"),
    [
        ([3.0, 1.0, 2.0], 2, False),
        ([3.0, 2.0, 2.0], 2, True),
        ([3.0, 1.0, 1.0], 1, False),
        ([np.nan, np.nan, 1.0], 1, True),
        ([2.0, 2.0, 1.0], 2, True),
    ],
)
def test_ties_among_the_largest_are_noticed(values: list[float], k: int, tied: bool) -> None:
    stream = Stream(0)
    with PairedDraws(stream):
        torch.tensor(values).topk(k)
    assert stream.tied == tied


@pytest.mark.parametrize(
    ("call", "tied"),
    [
        (lambda x: x.kthvalue(2), True),
        (lambda x: x.kthvalue(1, dim=-1, keepdim=True), False),
        (lambda x: torch.median(x, 0), True),
        (lambda x: torch.median(x, dim=0), True),
        (lambda x: torch.median(x), False),
        (lambda x: torch.nanmedian(x[1:], -1), False),
    ],
)
def test_equal_order_statistics_are_noticed(call: Callable[[torch.Tensor], object], tied: bool) -> None:
    stream = Stream(0)
    with PairedDraws(stream):
        call(torch.tensor([2.0, 1.0, 2.0, 3.0]))
    assert stream.tied == tied


def test_sizes_stay_sizes_where_dtypes_are_lifted() -> None:
    x = torch.zeros(2, 3, dtype=torch.float64)
    with LiftFunctions():
        assert x.new(x.size()).shape == x.shape  # of a tuple it would make data
        assert x.new_zeros(x.shape, dtype=torch.float32).dtype == torch.float64


def test_inference_mode_shows_the_draws_inside_of_composite_operators() -> None:
    def draws(mode: torch.inference_mode | torch.no_grad) -> list[object]:
        stream = Stream(0)
        with PairedDraws(stream), mode:
            query = torch.randn(1, 1, 3, 4)
            torch.nn.functional.dropout(torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True), 0.5)
        return [(draw.kind, draw.shape) for draw in stream.draws]

    assert draws(torch.inference_mode()) == draws(torch.no_grad()) == [("normal", (1, 1, 3, 4)), ("bernoulli", (1, 1, 3, 4))]
