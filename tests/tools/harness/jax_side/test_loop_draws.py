"""A compiled loop draws, step by step, what the same loop in Python draws; steps that share a key are noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrate_agent.tools.harness.common.random_streams import USUAL, Drawing, Dropped, Stream
from migrate_agent.tools.harness.jax_side.precision import Draws

STEPS = 3


class Noisy(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.rngs = rngs
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = self.drop(x + jax.random.normal(self.rngs(), x.shape))
        return x + jax.random.categorical(self.rngs(), jnp.stack([x, -x], -1))


def in_python(model: Noisy, x: Any) -> Any:
    for _ in range(STEPS):
        x = model(x)
    return x


def of_modules(model: Noisy, x: Any) -> Any:
    return nnx.fori_loop(0, STEPS, lambda i, carry: (carry[0], carry[0](carry[1])), (model, x))[1]


def scanned_modules(model: Noisy, x: Any) -> Any:
    scan: Any = nnx.scan
    step = scan(lambda carry: (carry[0], carry[0](carry[1])), in_axes=(nnx.Carry,), out_axes=nnx.Carry, length=STEPS)
    return step((model, x))[1]


def noise(key: Any, x: Any) -> Any:
    return x + jax.random.normal(key, x.shape)


def python_noise(model: Noisy, x: Any) -> Any:
    for _ in range(STEPS):
        x = noise(model.rngs(), x)
    return x


def folded(model: Noisy, x: Any) -> Any:
    key = model.rngs()
    return jax.lax.fori_loop(2, 2 + STEPS, lambda i, x: noise(jax.random.fold_in(key, i), x), x)


def split(model: Noisy, x: Any) -> Any:
    return jax.lax.scan(lambda x, key: (noise(key, x), None), x, jax.random.split(model.rngs(), STEPS))[0]


def handed_on(model: Noisy, x: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        key, own = jax.random.split(carry[0])
        return (key, noise(own, carry[1])), None

    return jax.lax.scan(step, (model.rngs(), x), None, length=STEPS)[0][1]


def inner_jit(model: Noisy, x: Any) -> Any:
    key, jitted = model.rngs(), jax.jit(noise)
    return jax.lax.fori_loop(0, STEPS, lambda i, x: jitted(jax.random.fold_in(key, i), x), x)


def one_key(model: Noisy, x: Any) -> Any:
    key = model.rngs()
    return jax.lax.fori_loop(0, STEPS, lambda i, x: noise(key, x), x)


def two_keys(model: Noisy, x: Any) -> Any:
    keys = jax.random.split(model.rngs())
    return jax.lax.scan(lambda x, i: (noise(keys[i % 2], x), None), x, jnp.arange(STEPS))[0]


@pytest.fixture(scope="module")
def draws() -> Iterator[Draws]:
    names = ("fori_loop", "scan", "cond", "switch")
    lax: Any = jax.lax
    before, of_flax = [getattr(lax, name) for name in names], nnx.fori_loop
    yield Draws()
    for name, own in zip(names, before, strict=True):
        setattr(lax, name, own)
    nnx.fori_loop = of_flax


def run(draws: Draws, function: Callable[..., Any], drawing: Drawing = USUAL) -> tuple[Any, list[Any], bool]:
    graphdef, state = nnx.split(Noisy(nnx.Rngs(0)))
    stream = Stream(0, drawing)

    def call(state: Any, x: Any) -> Any:
        with draws.paired(stream):
            return function(nnx.merge(graphdef, state, copy=True), x)

    result = np.asarray(jax.jit(call)(state, jnp.zeros((2, 3))))
    return result, stream.log(), draws.loop_keys.take_repeated()


@pytest.mark.parametrize("drawing", [Drawing(), Drawing(dropped=Dropped(1))], ids=["kept", "second mask zero"])
@pytest.mark.parametrize("function", [of_modules, scanned_modules])
def test_modules(draws: Draws, function: Callable[..., Any], drawing: Drawing) -> None:
    expected, log, _ = run(draws, in_python, drawing)
    result, found, repeated = run(draws, function, drawing)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert found == log and len(log) == 3 * STEPS and not repeated


@pytest.mark.parametrize(
    ("function", "alike"), [(folded, False), (split, False), (handed_on, False), (inner_jit, False), (one_key, True), (two_keys, True)]
)
def test_keys(draws: Draws, function: Callable[..., Any], alike: bool) -> None:
    expected, log, _ = run(draws, python_noise)
    result, found, repeated = run(draws, function)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert found == log and repeated is alike


def test_rates_of_each_step(draws: Draws) -> None:
    draws.rates.clear()
    graphdef, state = nnx.split(Noisy(nnx.Rngs(0)))
    jax.jit(lambda state, x: of_modules(nnx.merge(graphdef, state, copy=True), x))(state, jnp.zeros((2, 3)))
    assert draws.rates == [[0.5, [2, 3]]] * STEPS


@pytest.mark.parametrize("function", [of_modules, inner_jit, folded])
def test_what_was_compiled_before_is_found_again(draws: Draws, function: Callable[..., Any]) -> None:
    draws.nested, traced = False, []

    def noted(x: Any) -> Any:
        traced.append(x)
        return x + 1

    program = jax.jit(noted)
    program(jnp.zeros(2))
    run(draws, function)
    program(jnp.zeros(2))
    assert len(traced) == 1
