"""Rounding noise in torch's results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from migrate_agent.tools.harness.torch_side.rounding import RoundingNoise


def test_what_is_computed_in_place_gets_noise_too() -> None:
    with RoundingNoise(1):
        found = [torch.full((3,), 0.3, dtype=torch.float64).sigmoid_(), torch.sigmoid(torch.full((3,), 0.3, dtype=torch.float64))]
        kept = torch.zeros(3, dtype=torch.float64).copy_(torch.full((3,), 0.3, dtype=torch.float32))
    exact = torch.sigmoid(torch.full((3,), 0.3, dtype=torch.float64))
    for value in found:
        assert 0 < (value - exact).abs().max() < 1e-15
    assert torch.equal(kept, torch.full((3,), 0.3, dtype=torch.float32).double())


@pytest.mark.parametrize(
    ("change", "moves"), [(lambda x: x * 0.1, True), (lambda x: 0.1 + x, True), (lambda x: x / 0.5, False), (lambda x: x * 3, False)]
)
def test_a_plain_number_is_rounded_for_all_elements_alike(change: Callable[[torch.Tensor], torch.Tensor], moves: bool) -> None:
    x, share = torch.full((10_000,), 1 / 7, dtype=torch.float64), 2.0**-20
    shifts = []
    for seed in range(1, 6):
        with RoundingNoise(seed, share):
            changed = change(x)
        shifts.append(abs(float((changed / change(x) - 1).mean())) / share)
    # Noise of single elements averages out; what is common to all stays.
    assert (max(shifts) > 0.1) == moves


@pytest.mark.parametrize("axes", [(), (2,), (0, 2)])
def test_the_variance_of_equal_numbers_is_what_rounding_leaves(axes: tuple[int, ...]) -> None:
    equal = torch.full((2, 4, 256), 601.3624, dtype=torch.float64)
    with RoundingNoise(1, 2.0**-20):
        variance, deviation = (measure(equal, axes or None) for measure in (torch.var, torch.std))
    assert 0 < variance.max() < 1e-3
    assert 0 < deviation.max() < 3e-2
    spread = torch.arange(256, dtype=torch.float64).expand(2, 4, 256)
    with RoundingNoise(1, 2.0**-52):
        assert torch.allclose(torch.var(spread, axes or None), spread.var(axes or None), rtol=1e-14)


NORMALISED = {
    "groups": (torch.nn.GroupNorm(4, 8), (2, 8, 6, 6)),
    "groups of a signal": (torch.nn.GroupNorm(2, 8), (2, 8, 5)),
    "layers": (torch.nn.LayerNorm(64), (2, 5, 64)),
    "two axes": (torch.nn.LayerNorm((5, 64)), (2, 5, 64)),
    "batches": (torch.nn.BatchNorm2d(8), (2, 8, 6, 6)),
    "batches of rows": (torch.nn.BatchNorm1d(8), (4, 8)),
    "instances": (torch.nn.InstanceNorm2d(8), (2, 8, 6, 6)),
}


@pytest.mark.parametrize("name", NORMALISED)
def test_what_is_normalised_of_equal_numbers_is_what_rounding_leaves(name: str) -> None:
    norm, shape = NORMALISED[name][0].double(), NORMALISED[name][1]
    with RoundingNoise(1, 2.0**-20):
        assert 0.01 < norm(torch.full(shape, 601.3624, dtype=torch.float64)).abs().max() < 10
    usual = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with RoundingNoise(1, 2.0**-52):
        noisy = norm(usual)
    assert torch.allclose(noisy, norm(usual), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("softmax", [torch.softmax, torch.log_softmax])
@pytest.mark.parametrize(("terms", "least", "most"), [(8, 0.0, 1.5), (2048, 8.0, 40.0)])
def test_the_sum_of_a_long_softmax_is_off_by_its_length(
    softmax: Callable[..., torch.Tensor], terms: int, least: float, most: float
) -> None:
    values, share = torch.zeros(2, terms, 3, dtype=torch.float64), 2.0**-30
    exact = softmax(values, 1)
    with RoundingNoise(1, share):
        noisy = softmax(values, 1)
    changes = noisy - exact if softmax is torch.log_softmax else noisy / exact - 1
    assert least < (changes.mean(1).abs().max() / share) < most


@pytest.mark.parametrize("total", [lambda x: x.sum(1), lambda x: x.mean((0, 1)), lambda x: x.sum(), lambda x: x.mean(1)])
def test_a_long_total_is_off_by_its_length(total: Callable[[torch.Tensor], torch.Tensor]) -> None:
    values, share = torch.full((2, 2048, 3), 0.3, dtype=torch.float64), 2.0**-30
    with RoundingNoise(1, share):
        long, whole = total(values), values.round().sum()
    assert 3.0 < ((long / total(values) - 1).abs().max() / share) < 200.0
    assert whole == 0
    with RoundingNoise(1, share):
        assert ((values[:, :9].mean(1) / 0.3 - 1).abs().max() / share) < 2.5


def test_a_long_total_of_few_large_terms_is_off_by_one_rounding() -> None:
    values, share = torch.full((2, 2048), 1e-9, dtype=torch.float64), 2.0**-30
    values[:, 5] = 0.3
    with RoundingNoise(1, share):
        total, weights = values.sum(1), torch.softmax(values * 1e3, 1)
    assert ((total / values.sum(1) - 1).abs().max() / share) < 1.5
    assert ((weights[:, 5] / torch.softmax(values * 1e3, 1)[:, 5] - 1).abs().max() / share) < 4
