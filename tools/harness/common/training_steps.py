"""K optimiser steps on the same batches: torch's own optimisers on one side, the same formulas in numpy on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from migrate_agent.tools.harness.common import budgets, tolerances
from migrate_agent.tools.harness.common.input_sampling import Array

if TYPE_CHECKING:
    from migrate_agent.tools.harness.torch_side.module import Original

OPTIMISERS = ("adamw", "sgd")
"""In the order in which they run."""


def torch_curve(
    unit: Original,
    draw_state: Callable[[], Mapping[str, Array]],
    batches: Sequence[Sequence[Array]],
    targets: Sequence[Mapping[int, Array]],
    optimiser: str,
    rate: float,
    *,
    native: bool,
    noise: int = 0,
    share: float = tolerances.EPS64,
    untrained: set[str] | None = None,
    buffers: dict[str, Array] | None = None,
) -> list[float]:
    """The `STEPS` + 1 losses before each step and after the last, from the state that `draw_state` gives. Raises the errors of the original.

    Where the seed `noise` is not 0, rounding noise of relative size `share` is added. `untrained` gains
    the names of parameters without a gradient, which torch's optimisers do not change (not even by weight
    decay). `buffers` gains the buffers after the last step.
    """
    import torch

    from migrate_agent.tools.harness.common import methods, trees
    from migrate_agent.tools.harness.common.random_streams import Stream
    from migrate_agent.tools.harness.torch_side.module import comparable, is_leaf, loss, tensors_of, to_numpy

    module = unit.module(draw_state(), "train", native=native)
    trained = [value for value in module.parameters() if value.requires_grad]
    rows: dict[str, Any] = {
        "sgd": lambda: torch.optim.SGD(trained, lr=rate, momentum=budgets.MOMENTUM),
        "adamw": lambda: torch.optim.AdamW(
            trained, lr=rate, betas=budgets.BETAS, eps=budgets.ADAM_EPSILON, weight_decay=budgets.WEIGHT_DECAY
        ),
    }
    step = rows[optimiser]()
    losses = []
    for index in range(budgets.STEPS + 1):
        batch = index % len(batches)
        _, args, kwargs, _ = unit.arguments(batches[batch], native=native)
        with comparable(Stream(0), module, native=native, noise=noise, share=share):
            outputs: list[Any] = []
            result = methods.bound(module, unit.method)(*args, **kwargs)
            trees.encode(trees.with_objects(result, (args, kwargs)), outputs, is_leaf)
            value = loss(outputs, targets[batch])
            step.zero_grad()
            if value.requires_grad:
                torch.autograd.backward(value)
        if untrained is not None and index == 0:
            untrained |= {name for name, parameter in module.named_parameters() if parameter.grad is None}
        step.step()
        losses.append(value.item())
    if buffers is not None:
        names = dict(module.named_parameters(remove_duplicate=False))
        buffers.update({name: to_numpy(value) for name, value in tensors_of(module).items() if name not in names})
    return losses


def overflows(curves: Mapping[str, Any]) -> bool:
    """Whether the first loss of torch's own curves is finite in float64, and in the dtypes of a user's run it is not."""
    first = {kind: [curves[name][kind][0] for name in OPTIMISERS if name in curves] for kind in ("exact", "native")}
    return bool(np.isfinite(first["exact"]).all() and not np.isfinite(first["native"]).any())


def first_rate(steepness: float, parameters: Sequence[Array]) -> float:
    """The learning rate at which SGD's first step moves the parameters by `budgets.RELATIVE_STEP` of their norm. `steepness`: that of the gradients."""
    norm = sum(float(np.sum(np.abs(value) ** 2)) for value in parameters) ** 0.5
    return budgets.RELATIVE_STEP * (norm or 1.0) / steepness if np.isfinite(steepness) and steepness > 0 else budgets.RELATIVE_STEP


class NumpyOptimiser:
    """SGD with momentum or AdamW on a list of arrays, as in torch.optim (https://docs.pytorch.org/docs/stable/optim.html)."""

    def __init__(self, kind: str, rate: float, count: int) -> None:
        self.kind, self.rate = kind, rate
        self.steps = 0
        self.first: list[Any] = [None] * count
        self.second: list[Any] = [None] * count

    def step(self, values: Sequence[Array], gradients: Sequence[Array]) -> list[Array]:
        """The values after one step; shapes and dtypes stay. `values` and `gradients` have the same order and shapes."""
        self.begin()
        return [self.step_one(index, value, gradient) for index, (value, gradient) in enumerate(zip(values, gradients, strict=True))]

    def begin(self) -> None:
        """Begin a step, in which `step_one` is called once for each array."""
        self.steps += 1

    def step_one(self, index: int, value: Array, gradient: Array) -> Array:
        """The array at `index` after the step, of the same shape and dtype. One at a time, the others need not be in memory twice."""
        rule = self._sgd if self.kind == "sgd" else self._adamw
        return _as(value, rule(index, _parts(value), _parts(gradient)))

    # New memory costs a large array more than the arithmetic: moments are changed in place.
    def _sgd(self, index: int, value: Array, gradient: Array) -> Array:
        if self.first[index] is None:  # torch's first step takes the gradient itself as momentum, not a share of it
            self.first[index] = np.array(gradient)
        else:
            self.first[index] *= budgets.MOMENTUM
            self.first[index] += gradient
        step: Array = np.asarray(self.rate * self.first[index])
        return np.asarray(np.subtract(value, step, out=step))

    def _adamw(self, index: int, value: Array, gradient: Array) -> Array:
        (b1, b2), rate = budgets.BETAS, self.rate
        if self.first[index] is None:
            self.first[index], self.second[index] = np.zeros_like(gradient), np.zeros_like(gradient)
        first, second, spare = self.first[index], self.second[index], np.empty_like(gradient)
        first *= b1
        first += np.multiply(1 - b1, gradient, out=spare)
        second *= b2
        second += np.multiply(1 - b2, np.square(gradient, out=spare), out=spare)
        # In float64: `ADAM_EPSILON` is zero in float16.
        root = np.sqrt(second, out=spare).astype(np.float64, copy=False)
        root /= np.sqrt(1 - b2**self.steps)
        root += budgets.ADAM_EPSILON
        step: Array = np.asarray(rate / (1 - b1**self.steps) * first, root.dtype)
        step /= root
        return np.asarray(np.subtract(value * (1 - rate * budgets.WEIGHT_DECAY), step, out=step))


def _parts(value: Array) -> Array:
    """Complex [...] as real [..., 2]: torch's optimisers step real and imaginary parts separately."""
    return np.stack([value.real, value.imag], -1) if np.iscomplexobj(value) else value


def _as(like: Array, value: Array) -> Array:
    """The inverse of `_parts`, in the dtype of `like`."""
    return np.asarray(value[..., 0] + 1j * value[..., 1] if np.iscomplexobj(like) else value, dtype=like.dtype)
