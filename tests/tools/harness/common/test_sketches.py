"""Sketches tell arrays apart as comparisons of all elements do."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.evals.bench.sketches import PERTURBATIONS, judged
from migrate_agent.tools.harness.common.compare_arrays import rms
from migrate_agent.tools.harness.common.sketches import LARGE, sketch, sketched

SHAPE = (512, 515)


def array(dtype: type = np.float64, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Random numbers [shape] of this dtype."""
    generator = np.random.default_rng(7)
    drawn = generator.standard_normal(shape)
    return (drawn + 1j * generator.standard_normal(shape) if dtype is np.complex128 else drawn).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_sketch_is_small_and_as_large_in_mean_square(dtype: type) -> None:
    value = array(dtype)
    short = sketch(value)
    assert short.dtype == value.dtype
    assert short.size < value.size / 5
    assert rms(short) == pytest.approx(rms(value), rel=0.03)


@pytest.mark.parametrize("name", ["one element", "one row", "constant"])
def test_mean_square_holds_for_errors_that_are_not_random(name: str) -> None:
    error = np.zeros(SHAPE)
    error[{"one element": (3, 4), "one row": (3,), "constant": ()}[name]] = 1.0
    assert rms(sketch(error)) == pytest.approx(rms(error), rel=0.1)


def test_sketch_is_linear() -> None:
    one, other = array(), array()[::-1].copy()
    np.testing.assert_allclose(sketch(one + 2 * other), sketch(one) + 2 * sketch(other), rtol=1e-9, atol=1e-9)


def test_other_shapes_have_other_lengths() -> None:
    lengths = {sketch(np.zeros(shape)).size for shape in ((512, 515), (515, 512), (512 * 515,), (2, 256, 515))}
    assert len(lengths) == 4


def test_nan_and_infinities_stay_where_they_are() -> None:
    value = array()
    value[0, 0], value[-1, -1] = np.nan, -np.inf
    short = sketch(value)
    assert np.isnan(short).sum() == 1
    assert np.isinf(short).sum() == 1


def test_small_arrays_and_integers_are_kept() -> None:
    arrays = {"small": np.zeros(LARGE - 1), "integers": np.zeros(LARGE, np.int64), "large": np.zeros(LARGE)}
    kept = sketched(arrays)
    assert kept["small"] is arrays["small"]
    assert kept["integers"] is arrays["integers"]
    assert kept["large"].size < LARGE


@pytest.mark.parametrize("name", sorted(PERTURBATIONS))
def test_what_all_elements_refuse_the_sketch_refuses(name: str) -> None:
    verdicts = [judged(name, seed, SHAPE) for seed in range(3)]
    assert any(refused for refused, _ in verdicts)
    assert all(by_sketch for refused, by_sketch in verdicts if refused)


def test_what_lies_within_the_limit_passes() -> None:
    assert judged("rounding", 0, SHAPE, strength=0.5) == (False, False)
