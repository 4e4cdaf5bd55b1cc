"""Averages of a model's weights, and gradients that are summed over several batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

AverageFunction = Callable[[Any, Any, Any], Any]


def get_ema_avg_fn(decay: float = 0.999) -> AverageFunction:
    """`torch.optim.swa_utils.get_ema_avg_fn`: the moving average (averaged, current, number of updates) → averaged."""
    return lambda averaged, current, num_averaged: decay * averaged + (1 - decay) * current


def get_swa_avg_fn() -> AverageFunction:
    """`torch.optim.swa_utils.get_swa_avg_fn`: the mean of all updates."""
    return lambda averaged, current, num_averaged: averaged + (current - averaged) / (num_averaged + 1)


class AveragedModel(nnx.Module):
    """`torch.optim.swa_utils.AveragedModel` (https://pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html).

    A copy of `model` whose parameters are averages. The first update copies, so the initial weights have no share. Buffers are copied at each update,
    or averaged too with `use_buffers`. `update_parameters` may stand inside a jitted step; `avg_fn` is the mean by default.
    """

    def __init__(self, model: nnx.Module, avg_fn: AverageFunction | None = None, use_buffers: bool = False) -> None:
        self.module = nnx.clone(model)
        self.n_averaged = nnx.Variable(jnp.zeros([], jnp.int32))
        self.avg_fn = avg_fn or get_swa_avg_fn()
        self.use_buffers = use_buffers

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: nnx.Module) -> None:
        """Take the weights of `model` into the averages, in place."""
        number = self.n_averaged[...]

        def average(averaged: Any, current: Any) -> Any:
            return jnp.where(number == 0, current, self.avg_fn(averaged, current, number)).astype(current.dtype)

        # The streams of random numbers are no buffers.
        buffers = nnx.All(nnx.Not(nnx.Param), nnx.Not(nnx.RngState))
        averaged = (nnx.Param, buffers) if self.use_buffers else (nnx.Param,)
        for kind in averaged:
            nnx.update(self.module, jax.tree.map(average, nnx.state(self.module, kind), nnx.state(model, kind)))
        if not self.use_buffers:
            # A copy, so that a step may donate the model and its average.
            nnx.update(self.module, jax.tree.map(jnp.copy, nnx.state(model, buffers)))
        self.n_averaged[...] = number + 1


def accumulate_gradients(
    value_and_grad: Callable[..., tuple[Any, Any]], model: nnx.Module, batches: Iterable[Any]
) -> tuple[list[Any], Any]:
    """The values of each batch, and the sum of their gradients, as `backward` leaves it that is called for each without `zero_grad` between.

    `value_and_grad(model, batch)` is that of `nnx.value_and_grad`. Buffers change from batch to batch. A loss that is divided by their number stays so:
    nothing is averaged here. Clip what comes out, not the parts.
    """
    values: list[Any] = []
    total: Any = None
    for batch in batches:
        value, grads = value_and_grad(model, batch)
        values.append(value)
        total = grads if total is None else jax.tree.map(jnp.add, total, grads)
    return values, total
