"""The rates that torch's schedulers would set after a run has ended. Runs inside the sandbox, on the original's side."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from migrate_agent.tools.programs.judge.running import noting

LENGTHS = ("total_steps", "total_size", "total_iters", "T_max", "T_0", "step_size")
"""Attributes of schedulers that say after how many counts a rate changes its course."""
MOST_COUNTS = 5_000
UNKNOWN = 4
"""How many times the counts of the run are looked at where nothing says how long a schedule is."""
BAD_METRIC = 1e30


def watch_schedulers() -> list[Any]:
    """A list that gets the schedulers of the program, in the order of their construction."""
    module: Any = importlib.import_module("torch.optim.lr_scheduler")
    schedulers: list[Any] = []
    for cls in {module.LRScheduler, module.ReduceLROnPlateau, module.SequentialLR, module.ChainedScheduler}:
        cls.__init__ = noting(cls.__init__, schedulers)
    return schedulers


def later_rates(schedulers: list[Any]) -> list[dict[str, Any]]:
    """Of each scheduler that stands by itself its class, the count at which the run left it, and the first group's rates from there on.

    A scheduler whose whole course the run has seen is left out.
    """
    inner = {id(part) for one in schedulers for part in getattr(one, "_schedulers", ())}
    rows = []
    for scheduler in schedulers:
        # A chain has no count of its own.
        first = getattr(scheduler, "_schedulers", (scheduler,))[0]
        count = int(getattr(scheduler, "last_epoch", None) or first.last_epoch)
        counts = min(_length(scheduler, count), MOST_COUNTS) - count
        if id(scheduler) not in inner and counts > 0:
            metric = (BAD_METRIC if scheduler.mode == "min" else -BAD_METRIC) if hasattr(scheduler, "patience") else None
            rows.append({"class": type(scheduler).__name__, "count": count, "metric": metric, "rates": _rates(scheduler, counts, metric)})
    return rows


def _length(scheduler: Any, count: int) -> int:
    """Twice the configured length, or 0 where the run has passed it."""
    if hasattr(scheduler, "patience"):
        # How often the metric got no better decides, and not the count.
        return count + 2 * (int(scheduler.patience) + int(scheduler.cooldown) + 2)
    parts = getattr(scheduler, "_schedulers", ())
    milestones = getattr(scheduler, "milestones", None) or getattr(scheduler, "_milestones", None) or ()
    lengths = [*(getattr(scheduler, name) for name in LENGTHS if getattr(scheduler, name, None)), *milestones]
    lengths += [max(milestones, default=0) + _length(part, 0) // 2 for part in parts]
    if not lengths:
        return UNKNOWN * max(count, 1) if hasattr(scheduler, "lr_lambdas") else 0
    return 2 * int(max(lengths)) if count <= max(lengths) else 0


def _rates(scheduler: Any, counts: int, metric: float | None) -> list[float]:
    rates = []
    optimizer = getattr(scheduler, "optimizer", None) or scheduler._schedulers[0].optimizer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(counts):
            try:
                scheduler.step(*([] if metric is None else [metric]))
            except ValueError:
                # OneCycleLR has no rate past its last step.
                break
            rates.append(float(optimizer.param_groups[0]["lr"]))
    return rates
