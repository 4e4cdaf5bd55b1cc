"""Distributions beside PyTorch's, in float64: densities, moments, entropies, divergences and their gradients; draws by their moments."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tests.tools.compiling import unoptimised

A, B = [[0.3, 1.2, 2.5], [0.7, 0.9, 4.0]], [[0.5, 1.5, 1.1], [2.0, 0.4, 3.0]]
PROBS = [[0.2, 0.5, 0.9], [0.1, 0.6, 0.3]]
FACTOR = [[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.4, 0.7]]


class Case(NamedTuple):
    """A distribution's name, two sets of arguments, and a value at which densities are taken."""

    name: str
    arguments: dict[str, Any]
    others: dict[str, Any]
    value: Any


QUICK = frozenset({"Normal", "Uniform", "Bernoulli", "Categorical", "MultivariateNormal", "LowRankMultivariateNormal"})
CASES = [
    Case("Normal", {"loc": A, "scale": B}, {"loc": 0.0, "scale": B}, A),
    Case("LogNormal", {"loc": A, "scale": B}, {"loc": B, "scale": 1.5}, B),
    Case("Laplace", {"loc": A, "scale": B}, {"loc": B, "scale": A}, B),
    Case("Gumbel", {"loc": A, "scale": B}, {}, B),
    Case("Uniform", {"low": A, "high": 6.0}, {"low": -1.0, "high": [[7.0, 5.0, 8.0], [9.0, 8.0, 7.0]]}, [[1.0, 2.0, 3.0], [2.0, 1.4, 5.0]]),
    Case("Exponential", {"rate": A}, {"rate": B}, B),
    Case("Poisson", {"rate": A}, {"rate": B}, [[0.0, 1.0, 3.0], [2.0, 0.0, 5.0]]),
    Case("Bernoulli", {"probs": PROBS}, {"logits": A}, [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]),
    Case("Bernoulli", {"logits": A}, {"probs": PROBS}, [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]),
    Case("Categorical", {"probs": PROBS}, {"logits": A}, [[2, 0]]),
    Case("Categorical", {"logits": A}, {"probs": [[0.2, 0.8, 0.0], [0.1, 0.6, 0.3]]}, [2, 0]),
    Case("OneHotCategorical", {"logits": A}, {"logits": B}, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    Case("OneHotCategoricalStraightThrough", {"probs": PROBS}, {"logits": B}, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    Case("Gamma", {"concentration": A, "rate": B}, {"concentration": B, "rate": 2.0}, B),
    Case("Beta", {"concentration1": A, "concentration0": B}, {"concentration1": B, "concentration0": A}, PROBS),
    Case("Dirichlet", {"concentration": A}, {"concentration": B}, [[0.2, 0.5, 0.3], [0.1, 0.6, 0.3]]),
    Case("MultivariateNormal", {"loc": A, "scale_tril": FACTOR}, {"loc": [0.1, 0.2, 0.3], "covariance_matrix": np.eye(3) * 2 + 0.5}, B),
    Case(
        "LowRankMultivariateNormal",
        {"loc": A, "cov_factor": [[1.0, 0.2], [0.5, -2.0], [-0.3, 0.4]], "cov_diag": B},
        {"loc": [0.1, 0.2, 0.3], "cov_factor": [[0.5], [1.5], [-0.7]], "cov_diag": A},
        B,
    ),
    Case("MultivariateNormal", {"loc": A, "precision_matrix": np.eye(3) + 0.3}, {"loc": B, "scale_tril": FACTOR}, A),
]
PLAIN = ("mean", "variance", "stddev", "mode")
"""Properties that are compared where both have them; those that hold the parameters are compared as well."""


@pytest.fixture(autouse=True, scope="module")
def double_precision() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    with jax.enable_x64(True), unoptimised():
        yield
    torch.set_default_dtype(torch.float32)


def ours(name: str, arguments: Any) -> Any:
    """The vendored distribution."""
    for file in ("distributions", "distributions_discrete", "distributions_joint"):
        found = getattr(importlib.import_module(f"migrate_agent.tools.vendored.{file}"), name, None)
        if found is not None:
            return found(**arguments)
    raise KeyError(name)


def told(made: Any, other: Any, value: Any, divergence: Any, names: list[str]) -> dict[str, Any]:
    """What is compared of a distribution."""
    result = {"log_prob": made.log_prob(value)} | {name: getattr(made, name) for name in names}
    with suppress(NotImplementedError):
        result["entropy"] = made.entropy()
    return result | ({"divergence": divergence(made, other)} if other is not None else {})


def each(convert: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, float) else convert(value) for name, value in arguments.items()}


def _label(case: Case) -> str:
    return f"{case.name}-{'-'.join(case.arguments)}"


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=_label(case), marks=[] if case.name in QUICK else pytest.mark.ci) for case in CASES]
)
def test_as_torch(case: Case) -> None:
    from migrate_agent.tools.vendored.distributions import kl_divergence

    def leaf(value: Any) -> torch.Tensor:
        return torch.tensor(value, requires_grad=True)

    given, value = each(leaf, case.arguments), np.asarray(case.value)
    kind = getattr(torch.distributions, case.name)
    reference = kind(**given)
    names = [name for name in (*PLAIN, *case.arguments) if name in dir(ours(case.name, each(jnp.asarray, case.arguments)))]
    twin = kind(**each(torch.tensor, case.others)) if case.others else None
    theirs = told(reference, twin, torch.tensor(case.value), torch.distributions.kl_divergence, names)

    @jax.jit
    def run(arguments: dict[str, jax.Array], others: dict[str, jax.Array]) -> Any:
        def loss(arguments: dict[str, jax.Array]) -> Any:
            other = ours(case.name, others) if others else None
            told_ = told(ours(case.name, arguments), other, jnp.asarray(value), kl_divergence, names)
            return sum((jnp.sum(told_[key]) for key in ("log_prob", "entropy") if key in told_), jnp.zeros(())), told_

        made = ours(case.name, arguments)
        draws = made.sample((4000,), rngs=nnx.Rngs(0))
        return jax.grad(loss, has_aux=True)(arguments), draws, made

    (gradients, got), draws, made = run(each(jnp.asarray, case.arguments), each(jnp.asarray, case.others))
    assert (made.batch_shape, made.event_shape) == (tuple(reference.batch_shape), tuple(reference.event_shape))
    assert made.has_rsample == reference.has_rsample
    assert got.keys() == theirs.keys()
    for key, expected in theirs.items():
        np.testing.assert_allclose(got[key], expected.detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=key)
    sum((theirs[key].sum() for key in ("log_prob", "entropy") if key in theirs), torch.zeros(())).backward()
    for key, tensor in given.items():
        if isinstance(tensor, torch.Tensor):
            np.testing.assert_allclose(gradients[key], np.asarray(tensor.grad), rtol=1e-8, atol=1e-10, err_msg=key)
    drawn = reference.sample((2,))
    assert draws.shape == (4000, *drawn.shape[1:]) and draws.dtype == str(drawn.dtype).removeprefix("torch.")
    if not jnp.isnan(made.mean).any():
        error = np.asarray(made.stddev) / 4000**0.5
        assert (abs(np.asarray(draws.mean(0)) - made.mean) < 5 * error + 1e-9).all()
    wide = made.expand((2, *made.batch_shape))
    assert wide.batch_shape == (2, *made.batch_shape)
    np.testing.assert_allclose(wide.log_prob(jnp.asarray(value)), np.broadcast_to(got["log_prob"], wide.batch_shape), rtol=1e-9)


def test_independent_sums_what_it_takes_together() -> None:
    def made(module: Any, array: Any, loc: Any) -> Any:
        return module.Independent(module.Normal(array(loc), array(B)), 1)

    from migrate_agent.tools.vendored import distributions, distributions_joint

    class Ours:
        Independent, Normal = distributions_joint.Independent, distributions.Normal

    p, q = (made(Ours, jnp.asarray, loc) for loc in (A, B))
    reference, twin = (made(torch.distributions, torch.tensor, loc) for loc in (A, B))
    assert (p.batch_shape, p.event_shape, p.has_rsample) == ((2,), (3,), True)
    np.testing.assert_allclose(p.log_prob(jnp.asarray(B)), reference.log_prob(torch.tensor(B)))
    np.testing.assert_allclose(p.entropy(), reference.entropy())
    np.testing.assert_allclose(distributions.kl_divergence(p, q), torch.distributions.kl_divergence(reference, twin))
    assert p.rsample((5,), rngs=nnx.Rngs(0)).shape == (5, 2, 3)
    with pytest.raises(NotImplementedError, match="Normal"):
        distributions.kl_divergence(p, p.base_dist)


@pytest.mark.parametrize(
    ("name", "method", "flows"), [("Normal", "sample", False), ("Normal", "rsample", True), ("Gamma", "rsample", True)]
)
def test_gradients_pass_through_rsample_only(name: str, method: str, flows: bool) -> None:
    def loss(a: jax.Array) -> jax.Array:
        arguments = {"loc": a, "scale": 1.0} if name == "Normal" else {"concentration": a, "rate": 2.0}
        return jnp.sum(getattr(ours(name, arguments), method)(rngs=nnx.Rngs(0)))

    assert bool((jax.grad(loss)(jnp.asarray(A)) != 0).all()) == flows
