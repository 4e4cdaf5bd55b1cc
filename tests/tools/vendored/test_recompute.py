"""Backward passes that run modules again give what differentiating the forward pass gives, with dropout and buffers, under jit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrate_agent.tools.vendored.autograd import AutogradContext
from migrate_agent.tools.vendored.recompute import ModuleFunction, fork_rng, pull_back, rng_state, set_rng_state


class Part(nnx.Module):
    """Draws, and counts its calls."""

    def __init__(self, width: int, *, rngs: nnx.Rngs) -> None:
        self.kernel = nnx.Param(rngs.normal((width, width)))
        self.calls = nnx.BatchStat(jnp.zeros(()))
        self.rngs = rngs.fork()
        self.state: Any = nnx.data(rng_state(self))

    def __call__(self, x: jax.Array, again: bool = False) -> jax.Array:
        if again:
            with fork_rng(self):
                set_rng_state(self, self.state)
                return self.run(x)
        self.state = rng_state(self)
        self.calls[...] += 1
        return self.run(x)

    def run(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ self.kernel[...]) * jax.random.bernoulli(self.rngs.dropout(), 0.5, x.shape)


class Recomputed(ModuleFunction):
    @staticmethod
    def forward(ctx: AutogradContext, x: jax.Array, parts: Any, options: dict[str, Any]) -> jax.Array:
        ctx.inputs, ctx.parts, ctx.scale = [], parts, options["scale"]
        for part in parts:
            ctx.inputs.append(x)
            x = x + part(x) * options["scale"]
        return x

    @staticmethod
    def backward(ctx: AutogradContext, dy: jax.Array) -> tuple[Any, ...]:
        for part, x in zip(ctx.parts[::-1], ctx.inputs[::-1], strict=True):
            _, x_grad = pull_back(lambda part, x: part(x, again=True) * ctx.scale, part, x, dy)
            dy = dy + x_grad
        return dy, None, None


class Chain(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.parts = nnx.List([Part(3, rngs=rngs) for _ in range(3)])

    def __call__(self, x: jax.Array, custom: bool) -> jax.Array:
        if custom:
            result: jax.Array = Recomputed.apply(x, self.parts, {"scale": 2.0, "none": None})
            return result
        for part in self.parts:
            x = x + part(x) * 2.0
        return x


def take_step(chain: Chain, x: jax.Array, custom: bool) -> Any:
    def loss(chain: Chain, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = chain(x, custom)
        return jnp.sum(jnp.sin(y)), y

    return nnx.value_and_grad(loss, argnums=(0, 1), has_aux=True)(chain, x)


step: Any = nnx.jit(take_step, static_argnums=2)


def test_gradients_and_state_are_those_of_the_plain_pass() -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)), jnp.float32)
    found = []
    for custom in (True, False):
        chain = Chain(rngs=nnx.Rngs(0))
        first, second = (step(chain, x, custom) for _ in range(2))
        assert not np.allclose(first[0][1], second[0][1])  # new random numbers in each call
        found.append(jax.tree.leaves((first, second, nnx.state(chain))))
    assert len(found[0]) == len(found[1])
    for ours, plain in zip(*found, strict=True):
        if not jnp.issubdtype(ours.dtype, jax.dtypes.prng_key):
            np.testing.assert_allclose(ours, plain, rtol=2e-5, atol=1e-6)


def test_the_same_numbers_are_drawn_again() -> None:
    part = Part(3, rngs=nnx.Rngs(0))
    x = jnp.ones((8, 3))
    first, repeated, second = part(x), part(x, again=True), part(x)
    np.testing.assert_array_equal(first, repeated)
    assert not np.array_equal(first, second)


def test_a_pull_back_needs_a_function() -> None:
    with pytest.raises(RuntimeError, match="ModuleFunction"):
        pull_back(lambda part, x: part(x), Part(2, rngs=nnx.Rngs(0)), jnp.ones(2), jnp.ones(2))


def test_no_array_outlives_the_call() -> None:
    graph, state = nnx.split(Chain(rngs=nnx.Rngs(0)))

    def call(state: Any, x: jax.Array) -> tuple[Any, Any]:
        chain = nnx.merge(graph, state)
        return chain(x, custom=True), nnx.state(chain)

    with jax.checking_leaks():
        jax.make_jaxpr(call)(state, jnp.ones((2, 3)))
