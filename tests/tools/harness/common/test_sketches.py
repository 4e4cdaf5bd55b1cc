"""Sketches tell arrays apart as comparisons of all elements do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrate_agent.evals.bench.sketches import PERTURBATIONS, judged
from migrate_agent.tools.harness.common import tolerances
from migrate_agent.tools.harness.common.compare_arrays import compare, quiet, rms
from migrate_agent.tools.harness.common.sketches import EXTREMES, LARGE, Sketch, sketch, sketched
from migrate_agent.tools.harness.common.tensor_files import load, save
from migrate_agent.tools.harness.common.tolerances import FLOOR_FP64

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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_extremes_are_kept_in_order_and_in_files(dtype: type, tmp_path: Path) -> None:
    value = array(dtype)
    value[5, 5], value[6, 6] = np.inf, np.nan
    save(tmp_path / "sketch.safetensors", {"out/0": sketch(value), "small": np.ones(3)})
    loaded = load(tmp_path / "sketch.safetensors")
    assert loaded.keys() == {"out/0", "small"}
    finite = np.sort(np.abs(value[np.isfinite(value)]) if dtype is np.complex128 else value[np.isfinite(value)])
    for short in (sketch(value), loaded["out/0"]):
        assert isinstance(short, Sketch) and short.extremes is not None
        np.testing.assert_array_equal(short.extremes.elements, np.concatenate([finite[:EXTREMES], finite[-EXTREMES:]]))
        assert short.extremes.terms == pytest.approx(value.size / short.size)


def test_arrays_that_are_nowhere_finite_have_extremes() -> None:
    extremes = sketch(np.full(SHAPE, np.nan)).extremes
    assert extremes is not None and not extremes.elements.any()


@pytest.mark.parametrize("by", [0.0, 0.9, 1.1])
@pytest.mark.parametrize("noise", [0.0, 1e-12])
def test_an_error_of_an_extreme_has_the_limit_of_one_element(by: float, noise: float) -> None:
    """The sums alone see it from the root of their number of terms on."""
    value = array(shape=(4096, 4096))
    value[0, 0] = 50.0
    other, bare = value.copy(), sketch(value)
    other[0, 0] *= 1 + by * tolerances.WORST_FACTOR * FLOOR_FP64
    terms = value.size / bare.size

    def changes() -> tuple[float, float]:
        return noise / terms**0.5, noise / terms**0.5

    of_elements = compare("", value, other, lambda: (0.0, noise), FLOOR_FP64).failed
    assert compare("", bare, sketch(other), changes, FLOOR_FP64).failed == of_elements == (by > 1 and not noise)
    assert not compare("", np.asarray(bare), np.asarray(sketch(other)), quiet, FLOOR_FP64).failed


@pytest.mark.parametrize("seed", range(5))
def test_what_passes_by_elements_passes_by_extremes(seed: int) -> None:
    """Rounding of each element by its own size, with others in between: the order of the extremes may change, and their differences stay."""
    generator = np.random.default_rng(seed)
    value = generator.standard_cauchy(SHAPE)
    by = 0.999 * tolerances.WORST_FACTOR * FLOOR_FP64 * (rms(value) + np.abs(value)) * generator.choice([-1, 1], SHAPE)
    theirs, ours = sketch(value).extremes, sketch(value + by).extremes
    assert theirs is not None and ours is not None
    shares = np.abs(ours.elements - theirs.elements) / (rms(value) + np.abs(theirs.elements))
    assert shares.max() <= tolerances.WORST_FACTOR * FLOOR_FP64


@pytest.mark.parametrize("name", sorted(PERTURBATIONS))
def test_what_all_elements_refuse_the_sketch_refuses(name: str) -> None:
    verdicts = [judged(name, seed, SHAPE) for seed in range(3)]
    assert any(refused for refused, _ in verdicts)
    assert all(by_sketch for refused, by_sketch in verdicts if refused)


@pytest.mark.parametrize("name", sorted(PERTURBATIONS))
@pytest.mark.parametrize("strength", [0.95, 1.05])
def test_a_sketch_judges_as_all_elements_do_up_to_its_bound(name: str, strength: float) -> None:
    """Its RMS error is that of the whole array within 4 %, and its limit on one element coarser by the root of the number of terms."""
    for seed in range(3):
        generator = np.random.default_rng([seed, 1])
        value = generator.standard_normal(SHAPE)
        error = PERTURBATIONS[name](value, generator)
        error *= strength * FLOOR_FP64 * rms(value) / rms(error)
        assert rms(sketch(error)) == pytest.approx(rms(error), rel=0.04)
        by_elements = compare("", value, value + error, quiet, FLOOR_FP64).failed
        by_sketch = compare("", sketch(value), sketch(value + error), quiet, FLOOR_FP64).failed
        assert by_elements or not by_sketch
        if strength > 1:
            assert by_sketch
        elif by_elements and not by_sketch:
            largest = (np.abs(error) / (rms(value) + np.abs(value))).max()
            assert largest <= tolerances.WORST_FACTOR * FLOOR_FP64 * (value.size / sketch(value).size) ** 0.5


def test_what_lies_within_the_limit_passes() -> None:
    assert judged("rounding", 0, SHAPE, strength=0.5) == (False, False)


def plain_sketch(value: np.ndarray, short: Sketch) -> np.ndarray:
    """The sums of a sketch by their definition, with the signs that it has for this shape."""
    flat, ones = value.reshape(-1), np.ones(value.shape)
    signs = np.empty(flat.size)
    for first in range(0, flat.size, short.size):  # a sketch of ones in a row alone has the row's signs
        ones[...] = 0
        ones.reshape(-1)[first : first + short.size] = 1
        row = sketch(ones)
        signs[first : first + short.size] = np.sign(row[: flat.size - first])
    terms = np.zeros(-(-flat.size // short.size) * short.size, value.dtype)
    terms[: flat.size] = flat * signs
    return np.asarray(terms.reshape(-1, short.size).sum(0) * np.sqrt(short.size / flat.size))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_sums_are_those_of_the_definition(dtype: type) -> None:
    value = array(dtype)
    np.testing.assert_allclose(sketch(value), plain_sketch(value, sketch(value)), rtol=1e-4 if dtype is np.float32 else 1e-9, atol=1e-6)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(float(LARGE)),
        np.arange(float(LARGE))[::-1].copy(),
        np.zeros(LARGE),
        np.arange(LARGE) % 3.0,
        np.full(LARGE, np.nan),
        np.append(np.full(LARGE, np.inf), np.arange(-5.0, 5.0)),
        np.append(np.full(LARGE, -np.inf), np.arange(100.0)),
        np.append(np.full(LARGE, np.nan), np.arange(40.0)),
    ],
    ids=["rising", "falling", "zeros", "equal ones", "none finite", "few finite", "some finite", "fewer than are kept"],
)
def test_extremes_are_the_least_and_the_largest(value: np.ndarray) -> None:
    finite = np.sort(value[np.isfinite(value)])
    padded = finite if finite.size >= 2 * EXTREMES else np.sort(np.append(finite, np.zeros(2 * EXTREMES - finite.size)))
    extremes = sketch(value).extremes
    assert extremes is not None
    np.testing.assert_array_equal(extremes.elements, np.concatenate([padded[:EXTREMES], padded[-EXTREMES:]]))
