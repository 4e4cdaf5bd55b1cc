"""Optimizers that use the learning rate otherwise than as a factor of the whole update: Rprop, ASGD, Adafactor and Muon."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax


class RpropState(NamedTuple):
    """The gradient before, zero where its sign had changed, and the step sizes, as the parameters."""

    prev: Any
    step_size: Any


class AsgdState(NamedTuple):
    """Steps taken, int32 (); the rate of the next step and the weight of the average, float (); the averaged parameters."""

    count: Any
    eta: Any
    mu: Any
    ax: Any


class AdafactorState(NamedTuple):
    """Steps taken, int32 (); mean squares over rows (…, n, 1) and over columns (…, 1, m) of matrices; squares of vectors.

    The fields that a parameter does not need hold an array of no elements.
    """

    count: Any
    row_var: Any
    col_var: Any
    variance: Any


class MuonState(NamedTuple):
    """Steps taken, int32 (); the momentum buffer, as the parameters."""

    count: Any
    momentum_buffer: Any


def rate_at(learning_rate: Any, count: Any) -> Any:
    """The rate at a count of steps, of a number or a schedule."""
    return learning_rate(count) if callable(learning_rate) else learning_rate


def rprop(learning_rate: Any = 1e-2, etas: Any = (0.5, 1.2), step_sizes: Any = (1e-6, 50)) -> optax.GradientTransformation:
    """`torch.optim.Rprop` (https://pytorch.org/docs/stable/generated/torch.optim.Rprop.html).

    The rate is the first step size, so of a schedule its first value alone counts. Where a gradient changes its sign, the step is left out.
    """

    def init(params: Any) -> RpropState:
        first = rate_at(learning_rate, 0)
        return RpropState(jax.tree.map(jnp.zeros_like, params), jax.tree.map(lambda p: jnp.full_like(p, first), params))

    def update(grads: Any, state: RpropState, params: Any = None) -> tuple[Any, RpropState]:
        sign = jax.tree.map(lambda g, p: jnp.sign(g * p), grads, state.prev)
        sizes = jax.tree.map(
            lambda s, x: jnp.clip(x * jnp.where(s > 0, etas[1], jnp.where(s < 0, etas[0], 1.0)), *step_sizes), sign, state.step_size
        )
        grads = jax.tree.map(lambda s, g: jnp.where(s < 0, jnp.zeros_like(g), g), sign, grads)
        return jax.tree.map(lambda g, x: -jnp.sign(g) * x, grads, sizes), RpropState(grads, sizes)

    return optax.GradientTransformation(init, update)


def asgd(learning_rate: Any = 1e-2, lambd: Any = 1e-4, alpha: Any = 0.75, t0: Any = 1e6) -> optax.GradientTransformation:
    """`torch.optim.ASGD` (https://pytorch.org/docs/stable/generated/torch.optim.ASGD.html).

    A step uses the rate that the step before it left behind. The average `ax` is kept in the state and moves no parameter.
    """

    def init(params: Any) -> AsgdState:
        eta = jnp.asarray(rate_at(learning_rate, 0), optax.tree.dtype(params, "highest"))
        return AsgdState(jnp.zeros([], jnp.int32), eta, jnp.ones_like(eta), jax.tree.map(jnp.zeros_like, params))

    def update(grads: Any, state: AsgdState, params: Any) -> tuple[Any, AsgdState]:
        count = state.count + 1
        updates = jax.tree.map(lambda g, p: -state.eta * (g + lambd * p), grads, params)
        average = jax.tree.map(lambda a, p, u: jnp.where(state.mu == 1, p + u, a + state.mu * (p + u - a)), state.ax, params, updates)
        rate = rate_at(learning_rate, state.count)
        eta = jnp.asarray(rate / (1 + lambd * rate * count) ** alpha, state.eta.dtype)
        mu = jnp.asarray(1 / jnp.maximum(1, count - t0), state.mu.dtype)
        return updates, AsgdState(count, eta, mu, average)

    return optax.GradientTransformation(init, update)


def adafactor(
    learning_rate: Any = 1e-2, beta2_decay: Any = -0.8, eps: Any = (None, 1e-3), d: Any = 1.0, weight_decay: Any = 0.0
) -> optax.GradientTransformation:
    """`torch.optim.Adafactor` (https://pytorch.org/docs/stable/generated/torch.optim.Adafactor.html).

    The last two axes of a parameter are factored, in either order: a kernel of `nnx.Linear` may stay as it lies, one of `nnx.Conv` needs
    `in_torch_axes`.
    """

    def init(params: Any) -> AdafactorState:
        # Arrays that are not used must stay arrays: a tree of the parameters' structure has a leaf for each.
        rows = jax.tree.map(lambda p: jnp.zeros_like(p[..., :1]) if p.ndim > 1 else jnp.zeros([0]), params)
        columns = jax.tree.map(lambda p: jnp.zeros_like(p[..., :1, :]) if p.ndim > 1 else jnp.zeros([0]), params)
        vectors = jax.tree.map(lambda p: jnp.zeros([0]) if p.ndim > 1 else jnp.zeros_like(p), params)
        return AdafactorState(jnp.zeros([], jnp.int32), rows, columns, vectors)

    def update(grads: Any, state: AdafactorState, params: Any) -> tuple[Any, AdafactorState]:
        count = state.count + 1
        share = count.astype(float) ** beta2_decay
        row_var = jax.tree.map(lambda v, g: _toward(v, g, share, -1) if g.ndim > 1 else v, state.row_var, grads)
        col_var = jax.tree.map(lambda v, g: _toward(v, g, share, -2) if g.ndim > 1 else v, state.col_var, grads)
        variance = jax.tree.map(lambda v, g: v if g.ndim > 1 else v + share * (g * g - v), state.variance, grads)
        rate = rate_at(learning_rate, state.count)
        bounded = jnp.minimum(rate, 1 / jnp.sqrt(count.astype(float)))

        def step(p: Any, g: Any, row: Any, column: Any, vector: Any) -> Any:
            eps1 = jnp.finfo(p.dtype).eps if eps[0] is None else eps[0]
            estimate = row @ column / jnp.maximum(row.mean(-2, keepdims=True), eps1) if g.ndim > 1 else vector
            direction = g / jnp.sqrt(jnp.maximum(estimate, eps1 * eps1))
            size = jnp.maximum(eps[1], jnp.sqrt(jnp.mean(p * p))) * bounded
            return -size / jnp.maximum(1.0, jnp.sqrt(jnp.mean(direction * direction)) / d) * direction - rate * weight_decay * p

        updates = jax.tree.map(step, params, grads, row_var, col_var, variance)
        return updates, AdafactorState(count, row_var, col_var, variance)

    return optax.GradientTransformation(init, update)


def _toward(average: Any, grad: Any, share: Any, axis: int) -> Any:
    """A moving average after one more mean square over an axis."""
    return average + share * (jnp.mean(grad * grad, axis, keepdims=True) - average)


def muon(
    learning_rate: Any = 1e-3,
    weight_decay: Any = 0.1,
    momentum: Any = 0.95,
    nesterov: bool = True,
    ns_coefficients: Any = (3.4445, -4.775, 2.0315),
    eps: float = 1e-7,
    ns_steps: int = 5,
    adjust_lr_fn: str | None = None,
) -> optax.GradientTransformation:
    """`torch.optim.Muon` (https://pytorch.org/docs/stable/generated/torch.optim.Muon.html) for matrices, float (n, m).

    As there, the Newton-Schulz iteration runs in bfloat16. The rate depends on the order of the axes: `in_torch_axes` turns kernels of
    `nnx.Linear` round.
    """

    def init(params: Any) -> MuonState:
        return MuonState(jnp.zeros([], jnp.int32), jax.tree.map(jnp.zeros_like, params))

    def update(grads: Any, state: MuonState, params: Any) -> tuple[Any, MuonState]:
        rate = rate_at(learning_rate, state.count)
        buffer = jax.tree.map(lambda b, g: b + (1 - momentum) * (g - b), state.momentum_buffer, grads)

        def step(p: Any, g: Any, b: Any) -> Any:
            direction = _orthogonal(g + momentum * (b - g) if nesterov else b, ns_coefficients, ns_steps, eps)
            return -rate * (_muon_factor(p.shape[0], p.shape[1], adjust_lr_fn) * direction.astype(p.dtype) + weight_decay * p)

        return jax.tree.map(step, params, grads, buffer), MuonState(state.count + 1, buffer)

    return optax.GradientTransformation(init, update)


def _orthogonal(grad: Any, coefficients: Any, steps: int, eps: float) -> Any:
    """The nearest orthogonal matrix, roughly, by Newton-Schulz iterations in bfloat16."""
    a, b, c = coefficients
    x = grad.T if grad.shape[0] > grad.shape[1] else grad
    x = as_bfloat16(x)
    x = as_bfloat16(x.astype(jnp.float32) / as_bfloat16(jnp.maximum(jnp.linalg.norm(x.astype(jnp.float32)), eps)))
    for _ in range(steps):
        gram = _product(x, x.T)
        x = _product(_product(gram, gram, c, b * gram.astype(jnp.float32)), x, 1.0, a * x.astype(jnp.float32))
    return x.T if grad.shape[0] > grad.shape[1] else x


def _product(x: Any, y: Any, scale: float = 1.0, addend: Any = 0.0) -> Any:
    """`addend + scale * x @ y` of bfloat16 matrices, rounded once as torch's `addmm` is."""
    return as_bfloat16(addend + scale * jnp.matmul(x, y, preferred_element_type=jnp.float32))


def as_bfloat16(x: Any) -> Any:
    """The array in bfloat16, really rounded: under `jit`, XLA leaves out a conversion that the next one undoes."""
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7).astype(jnp.bfloat16)


def _muon_factor(rows: int, columns: int, adjust_lr_fn: str | None) -> float:
    if adjust_lr_fn in (None, "original"):
        return math.sqrt(max(1, rows / columns))
    return 0.2 * math.sqrt(max(rows, columns)) if adjust_lr_fn == "match_rms_adamw" else 1.0
