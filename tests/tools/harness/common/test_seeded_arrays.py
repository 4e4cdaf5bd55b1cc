"""Arrays that a seed tells: drawn alike on both sides, written as a few bytes, and told apart by name and seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrate_agent.tools.harness.common import input_sampling, tensor_files
from migrate_agent.tools.harness.common.seeded_arrays import LARGE, PIECE, Recipe, SeededArray

SHAPE = (512, 514)


def base(centre: float = 0.0, spread: float = 0.02) -> np.ndarray:
    """A large parameter [512, 514], float64, as a constructor makes it."""
    return centre + spread * np.random.default_rng(3).standard_normal(SHAPE)


def sample(value: np.ndarray, seed: int = 0, strength: float = 1.0, name: str = "weight") -> np.ndarray:
    """The parameter as it is drawn for a state."""
    return input_sampling.sample_state({name: value}, frozenset({name}), {}, (seed,), strength)[name]


def test_a_file_holds_the_recipe_and_gives_the_same_numbers(tmp_path: Path) -> None:
    drawn = sample(base())
    tensor_files.save(tmp_path / "state.safetensors", {"weight": drawn, "small": np.ones(3)})
    assert (tmp_path / "state.safetensors").stat().st_size < 2_000
    loaded = tensor_files.load(tmp_path / "state.safetensors")
    np.testing.assert_array_equal(loaded["weight"], drawn)
    np.testing.assert_array_equal(loaded["small"], np.ones(3))
    assert loaded["weight"].dtype == np.float64


def test_numbers_have_the_spread_of_a_perturbed_parameter_and_fit_into_float32() -> None:
    drawn = sample(base())
    assert isinstance(drawn, SeededArray)
    assert float(np.std(drawn)) == pytest.approx(0.02 * np.hypot(1, input_sampling.PARAMETER_JITTER), rel=0.02)
    np.testing.assert_array_equal(drawn, drawn.astype(np.float32))


def test_names_and_seeds_draw_other_numbers() -> None:
    one, other, later = sample(base()), sample(base(), name="bias"), sample(base(), seed=1)
    for value in (other, later):
        assert abs(float(np.corrcoef(one.reshape(-1), value.reshape(-1))[0, 1])) < 0.02


def test_constants_are_drawn_around_their_value() -> None:
    drawn = sample(np.ones(SHAPE))
    assert isinstance(drawn, SeededArray)
    assert float(np.mean(drawn)) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("value", "strength"),
    [(base(1.0), 1.0), (base()[:5], 1.0), (base(), 0.0), (np.where(base() > 0.07, np.inf, 0.0), 1.0), (base() + 1j, 1.0)],
    ids=["a table", "small", "as constructed", "not finite", "complex"],
)
def test_others_are_perturbed_as_they_are(value: np.ndarray, strength: float) -> None:
    assert not isinstance(sample(value, strength=strength), SeededArray)


def test_what_is_computed_of_it_has_no_recipe(tmp_path: Path) -> None:
    drawn = Recipe.named((0,), "weight", 0.0, 1.0, np.zeros(SHAPE)).draw()
    tensor_files.save(tmp_path / "twice.safetensors", {"weight": drawn * 2})
    np.testing.assert_array_equal(tensor_files.load(tmp_path / "twice.safetensors")["weight"], np.asarray(drawn) * 2)
    with pytest.raises(ValueError, match="read-only"):
        drawn[0, 0] = 1.0
    assert drawn.size >= LARGE


def test_large_inputs_are_told_by_their_seed() -> None:
    leaves = [input_sampling.Leaf(value, "float32") for value in (base(0.5, 2.0), base()[:5], np.abs(base()), np.arange(2**18))]
    drawn = input_sampling.sample_inputs(leaves, (1,), None)
    assert [isinstance(value, SeededArray) for value in drawn] == [True, False, False, False]
    assert float(np.mean(drawn[0])) == pytest.approx(0.5, abs=0.02)
    assert float(np.std(drawn[0])) == pytest.approx(2.0, rel=0.02)
    assert drawn[2].min() >= 0
    assert not isinstance(input_sampling.sample_inputs(leaves[:1], (1,), (0.0, 1.0))[0], SeededArray)


def test_normal_numbers_have_centre_scale_and_dtype() -> None:
    for like in (base(), base()[:50], base()[:50].astype(np.float32), base()[:50] + 1j):
        drawn = input_sampling.normal(like, (4, 3), 1.0, 0.25)
        assert (drawn.dtype, drawn.shape) == (like.dtype, like.shape)
        assert float(np.mean(drawn.real)) == pytest.approx(1.0, abs=0.01)
        assert float(np.std(drawn.real)) == pytest.approx(0.25, rel=0.03)


def test_numbers_drawn_in_pieces_are_those_of_one_call() -> None:
    recipe = Recipe((1, 2), 0.5, 2.0, (3, PIECE + 7), "float64")
    whole = np.random.Generator(np.random.Philox(np.random.SeedSequence(recipe.key))).standard_normal(recipe.shape, dtype=np.float32)
    np.testing.assert_array_equal(recipe.draw(), whole * np.float32(2) + np.float32(0.5))


def test_a_file_of_several_recipes_gives_each_its_numbers(tmp_path: Path) -> None:
    arrays = {name: sample(base(), name=name) for name in ("c", "a", "b")} | {"small": np.ones(3)}
    tensor_files.save(tmp_path / "state.safetensors", arrays)
    loaded = tensor_files.load(tmp_path / "state.safetensors")
    assert loaded.keys() == arrays.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(loaded[name], value)
