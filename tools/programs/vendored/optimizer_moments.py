"""Transforms for variants of Adam whose moments torch uses in another way than optax."""

from __future__ import annotations

import math
from itertools import count as steps_from
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class AmsgradState(NamedTuple):
    """Steps taken, int32 (); moving averages of gradients and of their squares, and the largest of the latter, as the parameters."""

    count: Any
    mu: Any
    nu: Any
    nu_max: Any


class NadamState(NamedTuple):
    """Steps taken, int32 (); product of all momenta so far, float (); moving averages of gradients and of their squares."""

    count: Any
    mu_product: Any
    mu: Any
    nu: Any


class RadamState(NamedTuple):
    """Steps taken, int32 (); moving averages of gradients and of their squares, as the parameters."""

    count: Any
    mu: Any
    nu: Any


def zeros_like(params: Any) -> Any:
    """Zeros of the parameters' shapes and dtypes, in arrays of their own, so that a step may donate each."""
    return jax.tree.map(jnp.zeros_like, params)


def update_moments(grads: Any, mu: Any, nu: Any, b1: Any, b2: Any) -> tuple[Any, Any]:
    """The moving averages of gradients and of their squares after one more gradient."""
    mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, mu, grads)
    nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, nu, grads)
    return mu, nu


def scale_by_amsgrad(b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> optax.GradientTransformation:
    """`torch.optim.Adam(amsgrad=True)` (https://pytorch.org/docs/stable/generated/torch.optim.Adam.html).

    torch takes the maximum before the bias correction, `optax.amsgrad` after it.
    """

    def init(params: Any) -> AmsgradState:
        return AmsgradState(jnp.zeros([], jnp.int32), zeros_like(params), zeros_like(params), zeros_like(params))

    def update(grads: Any, state: AmsgradState, params: Any = None) -> tuple[Any, AmsgradState]:
        count = state.count + 1
        mu, nu = update_moments(grads, state.mu, state.nu, b1, b2)
        nu_max = jax.tree.map(jnp.maximum, state.nu_max, nu)
        c1, c2 = 1 - b1**count, 1 - b2**count
        updates = jax.tree.map(lambda m, v: m / c1 / (jnp.sqrt(v / c2) + eps), mu, nu_max)
        return updates, AmsgradState(count, mu, nu, nu_max)

    return optax.GradientTransformation(init, update)


def scale_by_nadam(b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8, momentum_decay: Any = 4e-3) -> optax.GradientTransformation:
    """`torch.optim.NAdam` (https://pytorch.org/docs/stable/generated/torch.optim.NAdam.html).

    torch lets the momentum grow with the steps, and corrects the bias by the product of all momenta so far.
    """

    def init(params: Any) -> NadamState:
        return NadamState(jnp.zeros([], jnp.int32), jnp.ones([]), zeros_like(params), zeros_like(params))

    def update(grads: Any, state: NadamState, params: Any = None) -> tuple[Any, NadamState]:
        count = state.count + 1
        momentum = b1 * (1 - 0.5 * 0.96 ** (count * momentum_decay))
        next_momentum = b1 * (1 - 0.5 * 0.96 ** ((count + 1) * momentum_decay))
        product = state.mu_product * momentum
        mu, nu = update_moments(grads, state.mu, state.nu, b1, b2)
        of_gradient, of_mu = (1 - momentum) / (1 - product), next_momentum / (1 - product * next_momentum)
        c2 = 1 - b2**count
        updates = jax.tree.map(lambda g, m, v: (of_gradient * g + of_mu * m) / (jnp.sqrt(v / c2) + eps), grads, mu, nu)
        return updates, NadamState(count, product, mu, nu)

    return optax.GradientTransformation(init, update)


def scale_by_radam(b1: Any = 0.9, b2: float = 0.999, eps: Any = 1e-8) -> optax.GradientTransformation:
    """`torch.optim.RAdam` (https://pytorch.org/docs/stable/generated/torch.optim.RAdam.html).

    torch adds `eps` before the bias correction, `optax.radam` after it.
    """
    longest = 2 / (1 - b2) - 1
    # Found before the run: near the bound, float32 would begin at another step.
    first = next(n for n in steps_from(1) if _average_length(n, b2, 1 - b2**n) > 5) if longest > 5 else 0

    def init(params: Any) -> RadamState:
        return RadamState(jnp.zeros([], jnp.int32), zeros_like(params), zeros_like(params))

    def update(grads: Any, state: RadamState, params: Any = None) -> tuple[Any, RadamState]:
        count = state.count + 1
        mu, nu = update_moments(grads, state.mu, state.nu, b1, b2)
        # `1 - b2**count` would lose most digits of float32, and the length is a small difference of large numbers.
        c1, c2 = 1 - b1**count, -jnp.expm1(count * math.log(b2))
        if not first:
            return jax.tree.map(lambda m: m / c1, mu), RadamState(count, mu, nu)
        rectified = count >= first
        # A length within the formula's domain, so that the branch that is not taken is finite.
        rho = jnp.where(rectified, _average_length(count, b2, c2), 5.0)
        rectification = jnp.sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho))
        updates = jax.tree.map(lambda m, v: m / c1 * jnp.where(rectified, rectification * jnp.sqrt(c2) / (jnp.sqrt(v) + eps), 1.0), mu, nu)
        return updates, RadamState(count, mu, nu)

    return optax.GradientTransformation(init, update)


def _average_length(n: Any, b2: float, c2: Any) -> Any:
    """Length of the simple moving average that RAdam approximates after n steps; `c2` is the bias correction."""
    return 2 / (1 - b2) - 1 - 2 * n * b2**n / c2
