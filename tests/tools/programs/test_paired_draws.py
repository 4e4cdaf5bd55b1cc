"""Draws of modules while a program is judged: both sides get the same numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tools.programs.judge.draws import NativeDraws
from migrate_agent.tools.programs.judge.paired import PairedDraws

WEIGHTS = np.random.default_rng(0).random((64, 7))


class Sampler(torch.nn.Module):
    """Draws one number of each row."""

    def forward(self, weights: torch.Tensor) -> torch.Tensor:
        """The numbers (rows, 1)."""
        return torch.multinomial(weights, 1)


def test_a_sample_is_that_of_categorical() -> None:
    """Which adds Gumbel numbers, made of the same exponential ones."""
    theirs, ours = PairedDraws(), PairedDraws()
    theirs.active = True
    with NativeDraws(theirs):
        first, second = (Sampler()(torch.from_numpy(WEIGHTS)) for _ in range(2))
    assert not torch.equal(first, second)
    for sample in (first, second):
        gumbel = -jnp.log(ours.draw("exponential", WEIGHTS.shape))
        np.testing.assert_array_equal(sample[:, 0].numpy(), jnp.argmax(jnp.log(WEIGHTS) + gumbel, axis=-1))


def test_the_script_draws_of_torchs_stream() -> None:
    """And so does a module before training has begun."""
    weights, active = torch.from_numpy(WEIGHTS), PairedDraws()
    active.active = True
    expected = torch.multinomial(weights, 1, generator=torch.Generator().manual_seed(0))
    for paired, draw in ((active, lambda: torch.multinomial(weights, 1)), (PairedDraws(), lambda: Sampler()(weights))):
        torch.manual_seed(0)
        with NativeDraws(paired):
            assert torch.equal(draw(), expected)


@pytest.mark.parametrize(
    ("module", "drew"),
    [(torch.nn.Dropout(0.5), True), (torch.nn.Dropout(0.5).eval(), False), (torch.nn.Dropout(0.0), False), (Sampler(), True)],
)
def test_what_modules_draw_is_noted(module: torch.nn.Module, drew: bool) -> None:
    """Masks too, where they leave something out: the draws of the own precision are others."""
    paired = PairedDraws()
    paired.active = True
    with NativeDraws(paired):
        module(torch.from_numpy(WEIGHTS))
    assert paired.drew == drew


class Flip(torch.nn.Module):
    """Draws one number, as a transform of images does."""

    def forward(self, value: float) -> bool:
        """Whether it is below the number."""
        return bool(torch.rand(1, dtype=torch.float64) < value)


@pytest.mark.parametrize("around", [False, True])
def test_transforms_of_data_draw_of_torchs_stream(monkeypatch: pytest.MonkeyPatch, around: bool) -> None:
    """They are modules, and no part of a network: their rewrites draw of that stream too, whatever calls them."""
    paired = PairedDraws()
    paired.active = True
    monkeypatch.setattr(Flip, "__module__", "torchvision.transforms.transforms")
    flip: torch.nn.Module = torch.nn.Sequential(Flip()) if around else Flip()
    torch.manual_seed(0)
    expected = [float(number) < 0.5 for number in torch.rand(20)]
    torch.manual_seed(0)
    with NativeDraws(paired):
        assert [flip(0.5) for _ in range(20)] == expected
