"""A schedule that is stepped outside of the training step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from flax import nnx

from migrate_agent.tools.programs.vendored.host_schedules import HostSchedule, set_hyperparameter


class RateSchedule(HostSchedule):
    """Sets the rate of an optimizer to `schedule(count)` with each `step`, as a scheduler of torch does.

    `schedule` is one function, or one for each label of a group. `others` are schedules of further injected hyper-parameters, such as `b1`.
    """

    def __init__(
        self,
        optimizer: nnx.Optimizer[Any],
        schedule: Callable[[int], Any] | Mapping[str, Callable[[int], Any]],
        **others: Callable[[int], Any],
    ) -> None:
        self.schedule, self._others = schedule, tuple(others.items())
        super().__init__(optimizer)

    def _set(self) -> None:
        super()._set()
        for name, schedule in self._others:
            with jax.enable_x64(True):
                value = float(schedule(self.last_epoch))
            set_hyperparameter(self.optimizer, value, name)

    def rate(self, label: str) -> float:
        # In double precision as torch computes it, so that a rate that is logged has the same digits.
        with jax.enable_x64(True):
            return float((self.schedule if callable(self.schedule) else self.schedule[label])(self.last_epoch))
