"""The rates that the schedules of a JAX program would give after a run has ended. Runs inside the sandbox, on the candidate's side."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate_agent.tools.programs.judge.running import noting


def watch_schedules() -> list[Callable[[Any], Any]]:
    """A list that gets the functions of the count by which transforms of optax scale their updates, and those of injected rates."""
    functions: list[Callable[[Any], Any]] = []
    transform: Any = importlib.import_module("optax._src.transform")
    own = transform.scale_by_schedule

    def scale_by_schedule(step_size_fn: Callable[[Any], Any], *args: Any, **kwargs: Any) -> Any:
        functions.append(step_size_fn)
        return own(step_size_fn, *args, **kwargs)

    transform.scale_by_schedule = scale_by_schedule
    namespace: Any = importlib.import_module("optax")
    namespace.inject_hyperparams = _noting_rate(namespace.inject_hyperparams, functions)
    return functions


def _noting_rate(own: Callable[..., Any], functions: list[Callable[[Any], Any]]) -> Callable[..., Any]:
    def inject_hyperparams(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        construct = own(*args, **kwargs)

        def with_noted_rate(*values: Any, **named: Any) -> Any:
            rate = named.get("learning_rate", values[0] if values else None)
            functions.extend([rate] if callable(rate) else [])
            return construct(*values, **named)

        return with_noted_rate

    return inject_hyperparams


def keep_schedulers(schedulers: list[Any], folder: Path) -> None:
    """Let `schedulers` have every object that is stepped as torch's schedulers are, of classes in modules below `folder`: a function that ends would
    take them along."""
    modules = [module for module in list(sys.modules.values()) if str(getattr(module, "__file__", None) or "").startswith(str(folder))]
    classes: list[Any] = [one for module in modules for one in vars(module).values() if isinstance(one, type) and _is_scheduler(one)]
    for cls in {id(one): one for one in classes}.values():
        cls.__init__ = noting(cls.__init__, schedulers)


def later_rates(
    functions: Sequence[Callable[[Any], Any]], objects: Sequence[Any], rows: Sequence[Mapping[str, Any]], steps: int
) -> list[list[list[float]]]:
    """Of each scheduler of the original (`rows`: its count at the end, how many rates it has from there on, its metric) the rates that the
    schedules of this program give there, one list a schedule. `steps` are the optimizer steps of the run."""
    return [[*_of_objects(objects, row), *_of_functions(functions, row, steps)] for row in rows]


def _of_functions(functions: Sequence[Callable[[Any], Any]], row: Mapping[str, Any], steps: int) -> Iterator[list[float]]:
    """The rates by count of updates; a scheduler that is stepped once an epoch counts several of these at a time."""
    strides = {1, max(1, round(steps / row["count"])) if row["count"] else 1}
    for function in functions if row["metric"] is None else ():
        for stride in sorted(strides):
            yield [abs(float(function(count * stride))) for count in range(row["count"] + 1, row["count"] + row["rates"] + 1)]


def _of_objects(objects: Sequence[Any], row: Mapping[str, Any]) -> Iterator[list[float]]:
    """The rates of objects that are stepped as torch's schedulers are, from a copy of where the run left them."""
    for one in [thing for thing in objects if thing.last_epoch == row["count"]]:
        takes_metric = "metrics" in inspect.signature(one.step).parameters
        if takes_metric == (row["metric"] is not None):
            before = one.state_dict()
            yield [_stepped(one, row["metric"]) for _ in range(row["rates"])]
            one.load_state_dict(before)


def _is_scheduler(cls: type) -> bool:
    return all(hasattr(cls, name) for name in ("step", "get_last_lr", "state_dict", "load_state_dict"))


def _stepped(scheduler: Any, metric: float | None) -> float:
    scheduler.step(*([] if metric is None else [metric]))
    return float(scheduler.get_last_lr()[0])
