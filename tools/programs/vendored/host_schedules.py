"""Rates that a program computes outside its step: set by hand, by a function of its own, or by a metric.

They need an optimizer whose transform is made by `optax.inject_hyperparams`; then no new rate compiles the step again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx


def hyperparameters(optimizer: nnx.Optimizer[Any], name: str = "learning_rate") -> dict[str, nnx.Variable[Any]]:
    """The injected hyper-parameter of each group: label of `optax.partition` → variable, float (); "" where there are no groups.

    Raises `ValueError` where none was injected.
    """
    found = dict(_injected(optimizer.opt_state, name, ""))
    if not found:
        raise ValueError(f"{name} is no state of this optimizer: make its transform by optax.inject_hyperparams")
    return found


def set_hyperparameter(optimizer: nnx.Optimizer[Any], value: Any, name: str = "learning_rate") -> None:
    """Set the hyper-parameter of all groups, as `group["lr"] = value` does in a loop over torch's groups."""
    for variable in hyperparameters(optimizer, name).values():
        replace_number(variable, value)


def replace_number(variable: nnx.Variable[Any], value: Any) -> None:
    """Let a variable hold another number of its type, by a new array: into the old one it would be scattered."""
    old = variable[...]
    variable[...] = jnp.asarray(float(value)) if old.weak_type else jnp.asarray(value, old.dtype)


def get_hyperparameter(optimizer: nnx.Optimizer[Any], name: str = "learning_rate") -> float:
    """The hyper-parameter of the first group, as `optimizer.param_groups[0]["lr"]` gives it in torch."""
    (value, *_) = hyperparameters(optimizer, name).values()
    # The shortest decimal of a float32 is the number that the program wrote.
    return float(str(np.asarray(value[...])[()]))


def current_rates(optimizer: nnx.Optimizer[Any], last: Mapping[str, float]) -> dict[str, float]:
    """The rate of each group: of `last` where it still holds, else what the program has set since."""

    def value(label: str, array: Any) -> float:
        # The shortest decimal of a float32 is the number that the program wrote.
        return last[label] if label in last and array.dtype.type(last[label]) == array else float(str(array))

    return {label: value(label, np.asarray(variable[...])[()]) for label, variable in hyperparameters(optimizer).items()}


def _injected(node: Any, name: str, label: str) -> Any:
    if isinstance(node, nnx.Variable):
        return
    if hasattr(node, "inner_states"):
        for group, state in node.inner_states.items():
            yield from _injected(state, name, group)
    elif name in getattr(node, "hyperparams", {}):
        yield label, node.hyperparams[name]
    elif isinstance(node, tuple):
        for child in node:
            yield from _injected(child, name, label)


class HostSchedule:
    """A schedule of the program's own: `rate(label, count)` says the rate of a group, and `step` sets it."""

    def __init__(self, optimizer: nnx.Optimizer[Any]) -> None:
        self.optimizer = optimizer
        self.base_lrs = current_rates(optimizer, {})
        self.last_lrs = dict(self.base_lrs)
        self.last_epoch = 0
        self._set()

    def step(self) -> None:
        """One more count."""
        self.last_epoch += 1
        self._set()

    def rate(self, label: str) -> float:
        """The rate of a group at `last_epoch`."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were set last, in the order of the groups' labels."""
        return [self.last_lrs[label] for label in sorted(self.last_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` goes on from."""
        return {key: value for key, value in self.__dict__.items() if isinstance(value, (int, float, dict))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the rates of the optimizer are part of its own."""
        for name, value in state.items():
            setattr(self, name, value)

    def _set(self) -> None:
        self.last_lrs = {label: self.rate(label) for label in self.base_lrs}
        for label, variable in hyperparameters(self.optimizer).items():
            replace_number(variable, self.last_lrs[label])


class LambdaLR(HostSchedule):
    """`torch.optim.lr_scheduler.LambdaLR` (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LambdaLR.html).

    `lr_lambda` is one function, or one for each label of a group.
    """

    def __init__(self, optimizer: nnx.Optimizer[Any], lr_lambda: Callable[[int], Any] | Mapping[str, Callable[[int], Any]]) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def factor(self, label: str) -> float:
        """The function's value for a group at `last_epoch`."""
        return float(self.lr_lambda(self.last_epoch) if callable(self.lr_lambda) else self.lr_lambda[label](self.last_epoch))

    def rate(self, label: str) -> float:
        return self.base_lrs[label] * self.factor(label)

    def state_dict(self) -> dict[str, Any]:
        return {key: value for key, value in super().state_dict().items() if key != "lr_lambda"}


class MultiplicativeLR(LambdaLR):
    """`torch.optim.lr_scheduler.MultiplicativeLR`
    (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.MultiplicativeLR.html).

    The function's value multiplies the rate before; the function is not asked for count 0.
    """

    def rate(self, label: str) -> float:
        return current_rates(self.optimizer, self.last_lrs)[label] * (self.factor(label) if self.last_epoch else 1.0)


class ReduceLROnPlateau:
    """`torch.optim.lr_scheduler.ReduceLROnPlateau`
    (https://pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.ReduceLROnPlateau.html).

    `optax.contrib.reduce_on_plateau` counts otherwise. `min_lr` is one number, or one for each label of a group.
    """

    def __init__(
        self,
        optimizer: nnx.Optimizer[Any],
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Mapping[str, float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.min_lr, self.eps = threshold, threshold_mode, cooldown, min_lr, eps
        self.last_lrs = current_rates(optimizer, {})
        self.best = float("inf") if mode == "min" else -float("inf")
        self.last_epoch = self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: Any) -> None:
        """Take one more value of the metric, a number or an array (), and lower the rates where it has not got better for too long."""
        current = float(metrics)
        self.last_epoch += 1
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def get_last_lr(self) -> list[float]:
        """The rates that hold now, in the order of the groups' labels."""
        return [self.last_lrs[label] for label in sorted(self.last_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` goes on from; torch's keys where they mean the same."""
        names = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch", "last_lrs")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the rates of the optimizer are part of its own."""
        for name, value in state.items():
            setattr(self, name, value)

    def _is_better(self, current: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "abs":
            return sign * current < sign * self.best - self.threshold
        return sign * current < sign * (self.best * (1 - sign * self.threshold))

    def _reduce(self) -> None:
        variables = hyperparameters(self.optimizer)
        self.last_lrs = current_rates(self.optimizer, self.last_lrs)
        for label, rate in self.last_lrs.items():
            lowest = self.min_lr[label] if isinstance(self.min_lr, Mapping) else self.min_lr
            lowered = max(rate * self.factor, lowest)
            if rate - lowered > self.eps:
                self.last_lrs[label] = lowered
                variables[label][...] = lowered
