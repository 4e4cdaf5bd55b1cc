"""What a script draws of distributions, outside of its step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrate_agent.tools.programs.rewrite.host import SAMPLES
from migrate_agent.tools.vendored.distributions import Normal, Uniform
from migrate_agent.tools.vendored.distributions_joint import MultivariateNormal
from migrate_agent.tools.vendored.torch_random import TorchGenerator
from tests.tools.programs.scripts import TRAIN, rewritten

LOC, SCALE = np.array([0.5, -1.0], np.float32), np.array([[2.0, 0.0], [0.7, 1.5]], np.float32)
ROWS: dict[str, tuple[Any, Any]] = {
    "Normal": (lambda a: torch.distributions.Normal(a(LOC), a(SCALE[:, 0])), lambda a: Normal(a(LOC), a(SCALE[:, 0]))),
    "Uniform": (lambda a: torch.distributions.Uniform(a(LOC), a(LOC + 2)), lambda a: Uniform(a(LOC), a(LOC + 2))),
    "MultivariateNormal": (
        lambda a: torch.distributions.MultivariateNormal(a(LOC), scale_tril=a(SCALE)),
        lambda a: MultivariateNormal(a(LOC), scale_tril=a(SCALE)),
    ),
}


@pytest.mark.parametrize("shape", ("", "*(5,), ", "*(10, 3), "))
@pytest.mark.parametrize("name", ROWS)
def test_samples_are_torchs(name: str, shape: str) -> None:
    """Of any shape, one after the other."""
    theirs, ours = ROWS[name]
    torch.manual_seed(3)
    generator = TorchGenerator()
    generator.manual_seed(3)
    reference, distribution = theirs(torch.from_numpy), ours(jnp.asarray)
    for _ in range(2):
        size = eval(f"({shape})") if shape else ()
        got = eval(SAMPLES[name].format("d", shape), {"d": distribution, "default_generator": generator})
        np.testing.assert_allclose(np.asarray(got), reference.sample(size).numpy(), rtol=2e-6, atol=2e-6)


DRAWN = TRAIN.replace("model = Net()", "base = torch.distributions.{0}\nmodel = Net()").replace(
    "    # the usual four lines\n", "    x = x * base.sample((8,))\n"
)


def test_a_sample_with_a_shape(tmp_path: Path) -> None:
    """The shape stands in front of the distribution's own."""
    draft = rewritten(DRAWN.replace("{0}", "Normal(torch.zeros(6), torch.ones(6))"), tmp_path)
    assert draft.holes == ()
    assert "x = x * (base.loc + base.scale * default_generator.randn(*(8,), *base.loc.shape))" in draft.files["train_jax.py"]


def test_other_samples_are_holes(tmp_path: Path) -> None:
    """Torch draws them in a way of their own."""
    (hole,) = rewritten(DRAWN.replace("{0}", "Gamma(torch.ones(6), torch.ones(6))"), tmp_path).holes
    assert "Gamma" in hole.reason
