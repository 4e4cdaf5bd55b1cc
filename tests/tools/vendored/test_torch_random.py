"""The stream of `TorchGenerator` against torch's."""

import jax
import numpy as np
import pytest
import torch

from migrate_agent.tools.vendored.torch_random import TorchGenerator


@pytest.mark.parametrize("seed", [0, 1337, 2**32 + 5, 2**40 + 17])
def test_draws_are_torchs(seed: int) -> None:
    """Draws of all kinds, one after the other, at sizes around torch's blocks of sixteen."""
    generator = TorchGenerator().manual_seed(seed)
    torch.manual_seed(seed)
    for size in (1, 3, 15, 16, 17, 31, 32, 100):
        assert np.abs(np.asarray(generator.randn(size)) - torch.randn(size).numpy()).max() < 1e-6
        assert np.array_equal(generator.rand(2, size), torch.rand(2, size))
        assert np.array_equal(generator.randperm(size), torch.randperm(size))
    for high in (10, 2**27, 2**28, 2**31 - 1):
        assert np.array_equal(generator.randint(high, (7,)), torch.randint(high, (7,)))
    assert generator.integer() == int(torch.empty((), dtype=torch.int64).random_())


def test_state_goes_on_where_it_was() -> None:
    """A state holds the spare normal number too."""
    generator = TorchGenerator().manual_seed(3)
    generator.randn(3)
    state = generator.get_state()
    first = np.asarray(generator.randn(5))
    assert np.array_equal(first, generator.set_state(state).randn(5))


@pytest.mark.parametrize("draws", [0, 1, 3, 623, 624, 625, 2000])
def test_torch_hands_its_state_over(draws: int) -> None:
    """After any number of draws, with a spare normal number and without."""
    torch.manual_seed(11)
    torch.rand(draws)
    for spare in (False, True):
        if spare:
            torch.randn(1)
        state = torch.get_rng_state()
        generator = TorchGenerator().set_torch_state(state.numpy())
        assert np.abs(np.asarray(generator.randn(3)) - torch.randn(3).numpy()).max() < 1e-6
        assert np.array_equal(generator.permutation(1000), torch.randperm(1000))
        assert generator.initial_seed() == 11


def test_streams_of_jax_follow_from_the_seed() -> None:
    """Each module gets another one, and no number of torch's stream is taken."""
    generator = TorchGenerator().manual_seed(5)
    first, second = (jax.random.key_data(generator.rngs().params()) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(generator.randn(3), TorchGenerator().manual_seed(5).randn(3))
    assert np.array_equal(jax.random.key_data(generator.manual_seed(5).rngs().params()), first)


@pytest.mark.parametrize("size", [3, 16, 37])
def test_double_precision_draws_other_numbers(size: int) -> None:
    ours, theirs = TorchGenerator().manual_seed(11), torch.Generator().manual_seed(11)
    with jax.enable_x64(True):
        for _ in range(2):
            found = np.asarray(ours.randn(size, dtype=float))
            assert np.abs(found - torch.randn(size, dtype=torch.float64, generator=theirs).numpy()).max() < 1e-12
            assert np.array_equal(ours.rand(size, dtype=float), torch.rand(size, dtype=torch.float64, generator=theirs))
            assert np.array_equal(ours.randperm(size), torch.randperm(size, generator=theirs))
