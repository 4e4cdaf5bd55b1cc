"""Transforms for torch's SGD with dampening and for its Adagrad."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class DampenedTraceState(NamedTuple):
    """Steps taken, int32 (); the momentum buffer, as the parameters."""

    count: Any
    trace: Any


class AdagradState(NamedTuple):
    """Steps taken, int32 (); the sum of the squared gradients, as the parameters."""

    count: Any
    sum: Any


def trace_with_dampening(momentum: Any, dampening: Any) -> optax.GradientTransformation:
    """The momentum of `torch.optim.SGD(dampening=…)` (https://pytorch.org/docs/stable/generated/torch.optim.SGD.html).

    The first gradient fills the buffer undampened. Without momentum, dampening has no effect.
    """
    # A momentum that a schedule cycles is no number while the step is traced.
    if isinstance(momentum, (int, float)) and momentum == 0:
        return optax.identity()

    def init(params: Any) -> DampenedTraceState:
        return DampenedTraceState(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(grads: Any, state: DampenedTraceState, params: Any = None) -> tuple[Any, DampenedTraceState]:
        rate = jnp.where(state.count == 0, 1.0, 1 - dampening)
        trace = jax.tree.map(lambda t, g: momentum * t + rate.astype(g.dtype) * g, state.trace, grads)
        return trace, DampenedTraceState(state.count + 1, trace)

    return optax.GradientTransformation(init, update)


def scale_by_adagrad(lr_decay: Any = 0.0, initial_accumulator_value: Any = 0.0, eps: Any = 1e-10) -> optax.GradientTransformation:
    """`torch.optim.Adagrad` (https://pytorch.org/docs/stable/generated/torch.optim.Adagrad.html).

    torch adds `eps` outside the root, `optax.adagrad` inside it. `lr_decay` divides the rate by `1 + lr_decay * step`.
    """

    def init(params: Any) -> AdagradState:
        return AdagradState(jnp.zeros([], jnp.int32), jax.tree.map(lambda p: jnp.full_like(p, initial_accumulator_value), params))

    def update(grads: Any, state: AdagradState, params: Any = None) -> tuple[Any, AdagradState]:
        total = jax.tree.map(lambda s, g: s + g * g, state.sum, grads)
        decay = 1 + lr_decay * state.count
        updates = jax.tree.map(lambda s, g: g / (jnp.sqrt(s) + eps) / decay, total, grads)
        return updates, AdagradState(state.count + 1, total)

    return optax.GradientTransformation(init, update)
