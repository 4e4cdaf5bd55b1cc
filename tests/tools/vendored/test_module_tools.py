"""Copies of modules, the order in which functions are applied to them, and parts that are computed again."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from torch import nn

from migrate_agent.tools.vendored.containers import Sequential
from migrate_agent.tools.vendored.linear import Identity, Linear
from migrate_agent.tools.vendored.module_tools import (
    buffers,
    checkpoint,
    copied,
    copy_state,
    freeze,
    in_training,
    inner_first,
    named_parameters,
    parameters,
    set_child,
)


class Block(nnx.Module):
    """A layer, and dropout."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.fc = nnx.Linear(3, 3, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(self.drop(self.fc(x)))

    def scaled(self, x: jax.Array, scale: float) -> jax.Array:
        return self(x) * scale


def test_copies_have_the_same_parameters_and_draw_their_own_numbers() -> None:
    block = Block(rngs=nnx.Rngs(0))
    blocks = [block, copied(block), copied(block), *copied(nnx.List([copied(block)]))]
    masks = {tuple(one.drop(jnp.ones(64)).tolist()) for one in blocks}
    assert len(masks) == len(blocks)
    assert all((one.fc.kernel[...] == block.fc.kernel[...]).all() for one in blocks)


def test_copies_are_made_while_tracing() -> None:
    def build(key: jax.Array) -> Any:
        block = Block(rngs=nnx.Rngs(key))
        return nnx.state(nnx.List([block, copied(block)]))

    first, second = jax.tree.leaves(nnx.filter_state(jax.jit(build)(jax.random.key(0)), nnx.RngKey))
    assert first != second


def test_functions_are_applied_to_inner_modules_first_as_in_torch() -> None:
    shared, twin = nn.Linear(2, 2), Linear(2, 2, rngs=nnx.Rngs(0))
    original = nn.Sequential(nn.Sequential(shared, nn.Identity()), nn.Sequential(shared, shared))
    rewritten = Sequential(Sequential(twin, Identity()), Sequential(twin, twin))
    visited: list[str] = []
    original.apply(lambda module: visited.append(type(module).__name__))
    assert [type(module).__name__ for module in inner_first(rewritten)] == visited


@pytest.mark.parametrize(
    ("again", "plain"),
    [
        (lambda block, x: checkpoint(block, x), lambda block, x: block(x)),
        (lambda block, x: checkpoint(block.scaled, x, 2.0), lambda block, x: block.scaled(x, 2.0)),
        (lambda block, x: checkpoint(block.scaled, scale=2.0, x=x), lambda block, x: block.scaled(x, 2.0)),
    ],
)
def test_what_is_computed_again_draws_and_differentiates_as_without(again: Any, plain: Any) -> None:
    x = jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
    results = []
    for run in (again, plain):
        block = Block(rngs=nnx.Rngs(0))
        gradients = nnx.grad(lambda block, run=run: run(block, x).sum())(block)
        results.append([*jax.tree.leaves(gradients), run(block, x)])
    for one, other in zip(*results, strict=True):
        assert jnp.allclose(one, other, rtol=1e-5)


def noisy(x: jax.Array, share: jax.Array, *, rngs: nnx.Rngs) -> jax.Array:
    """Draws."""
    return x + jax.random.normal(rngs(), x.shape) * share**2


def test_a_function_that_draws_is_computed_again_with_the_numbers_of_the_first_time() -> None:
    x = jnp.linspace(-1.0, 1.0, 12)
    results = []
    for run in (lambda x, rngs: checkpoint(noisy, x, share=x, rngs=rngs), lambda x, rngs: noisy(x, share=x, rngs=rngs)):
        rngs = nnx.Rngs(0)
        first, second = run(x, rngs), run(x, rngs)
        assert not jnp.allclose(first, second)
        results.append([first, second, jax.grad(lambda x, run=run: run(x, nnx.Rngs(0)).sum())(x)])
    for one, other in zip(*results, strict=True):
        assert jnp.allclose(one, other, rtol=1e-5)


def test_parameters_are_read_and_set_in_torchs_layout() -> None:
    layer = Linear(2, 3, rngs=nnx.Rngs(0))
    weight, bias = parameters(layer)
    assert weight.shape == (3, 2) and (weight * 1 == layer.weight).all() and (jnp.abs(weight[...]) == abs(weight)).all()
    weight[...] = jnp.zeros_like(weight[...])
    bias[...] = bias[...] + 1
    assert not layer.kernel[...].any()


def test_frozen_parameters_are_still_parameters() -> None:
    layer = Linear(2, 3, rngs=nnx.Rngs(0))
    freeze(layer, where=lambda name, value: name == "weight" and value.ndim == 2)
    assert not isinstance(layer.kernel, nnx.Param) and isinstance(layer.bias, nnx.Param)
    assert [name for name, _ in named_parameters(layer)] == ["weight", "bias"]
    assert not list(buffers(layer))


def test_a_module_takes_the_state_of_another() -> None:
    source, target = (Sequential(Linear(2, 3, rngs=nnx.Rngs(seed)), Linear(3, 1, rngs=nnx.Rngs(seed))) for seed in (0, 1))
    copy_state(freeze(target), source)
    assert all((one[...] == other[...]).all() for one, other in zip(parameters(source), parameters(target), strict=True))


def test_a_part_of_a_container_is_replaced_by_its_name() -> None:
    """And a child of another module by its attribute, as `setattr` of torch does both."""
    net = Sequential(Linear(3, 3, rngs=nnx.Rngs(0)), Identity())
    set_child(net, "0", Linear(3, 2, rngs=nnx.Rngs(0)))
    set_child(net, "last", Identity())
    assert net(jnp.ones((1, 3))).shape == (1, 2)
    assert net.names == ("0", "1", "last")
    block = Block(rngs=nnx.Rngs(0))
    set_child(block, "fc", nnx.Linear(3, 5, rngs=nnx.Rngs(0)))
    assert block(jnp.ones((1, 3))).shape == (1, 5)


def test_a_module_trains_as_it_says_itself_or_as_its_parts_do() -> None:
    drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    layers = Sequential(Linear(2, 2, rngs=nnx.Rngs(0)), drop, nnx.BatchNorm(2, rngs=nnx.Rngs(0)))
    assert in_training(layers) and in_training(drop) and in_training(Linear(2, 2, rngs=nnx.Rngs(0)))
    layers.eval()  # type: ignore[no-untyped-call]
    assert not in_training(layers) and not in_training(drop)
    drop.train()  # type: ignore[no-untyped-call]
    assert in_training(layers) and in_training(drop)
