"""The numbers of the keys that initial values are drawn with are as random as the tests of these values need."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.stats import kstest  # type: ignore[import-untyped]

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.jax_side.keys import QUICK, keys, no_key

ALPHA = 1e-6
COUNT = 512


def uniform(group: object, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in [0, 1) by key."""
    return np.asarray(jax.vmap(lambda key: jax.random.uniform(key, shape))(group), np.float64)


def split(group: object, number: int) -> object:
    """The n-th of the keys that each key is split into."""
    return jax.vmap(lambda key: jax.random.split(key, 3)[number])(group)


def folded(group: object, number: int) -> object:
    """Each key with a number folded in."""
    return jax.vmap(lambda key: jax.random.fold_in(key, number))(group)


GROUPS = {
    "seeds that follow each other": lambda: keys(np.arange(COUNT) + 2000),
    "split": lambda: split(keys(np.arange(COUNT)), 1),
    "folded": lambda: folded(keys(np.arange(COUNT)), 7),
    "folded and split": lambda: split(folded(split(keys(np.arange(COUNT)), 2), 0), 0),
}


@pytest.mark.parametrize("made", GROUPS.values(), ids=GROUPS)
def test_numbers_are_uniform_by_key_by_place_and_all_in_all(made: object) -> None:
    values = uniform(made(), (40, 16))  # type: ignore[operator]
    assert kstest(values.reshape(-1), "uniform").pvalue > ALPHA
    assert min(kstest(row.reshape(-1), "uniform").pvalue for row in values) > ALPHA
    assert min(kstest(values.reshape(COUNT, -1)[:, place], "uniform").pvalue for place in range(0, 640, 5)) > ALPHA


@pytest.mark.parametrize("made", GROUPS.values(), ids=GROUPS)
def test_numbers_of_neighbours_have_nothing_to_do_with_each_other(made: object) -> None:
    flat = uniform(made(), (40, 16)).reshape(COUNT, -1) - 0.5  # type: ignore[operator]
    for step in range(1, 40):
        for one, other in ((flat[:, :-step], flat[:, step:]), (flat[:-step], flat[step:])):
            assert abs(np.mean(one * other)) * 12 < 6 / np.sqrt(one.size), step


def test_keys_made_of_a_key_differ_from_each_other() -> None:
    group = keys(np.arange(COUNT))
    made = [group, *(split(group, number) for number in range(3)), *(folded(group, number) for number in range(20))]
    data = np.concatenate([np.asarray(jax.random.key_data(each)) for each in made])
    assert len(np.unique(data, axis=0)) == len(data)
    assert len(np.unique(np.asarray(jax.random.bits(group[0], (budgets.INIT_SAMPLE,))))) > 0.99 * budgets.INIT_SAMPLE


def test_keys_are_those_of_their_seeds() -> None:
    one = jax.random.key(7, impl=QUICK)
    assert (jax.random.key_data(one) == jax.random.key_data(keys([7]))[0]).all()
    assert no_key((3,)).shape == (3,) and no_key(()).dtype == one.dtype


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_bits_of_each_width_are_even(dtype: str) -> None:
    with jax.enable_x64(dtype == "uint64"):
        bits = np.asarray(jax.random.bits(jax.random.key(1, impl=QUICK), (20_000,), dtype), np.float64)
    assert kstest((bits + 0.5) / 2.0 ** np.iinfo(dtype).bits, "uniform").pvalue > ALPHA


def test_what_jax_draws_of_them_has_its_distribution() -> None:
    group = keys(np.arange(64))
    normal = np.asarray(jax.vmap(lambda key: jax.random.normal(key, (50, 20)))(group), np.float64)
    assert kstest(normal.reshape(-1), "norm").pvalue > ALPHA
    orders = np.asarray(jax.vmap(lambda key: jax.random.permutation(key, 8))(group))
    assert (np.sort(orders, axis=1) == np.arange(8)).all() and len(np.unique(orders, axis=0)) > 60
