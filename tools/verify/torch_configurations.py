"""Finds other configurations that the original takes. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from migrate_agent.tools.verify import limits, sampling
from migrate_agent.tools.verify.configurations import Changes
from migrate_agent.tools.verify.torch_modes import OperatorMode, Undetermined
from migrate_agent.tools.verify.torch_results import attempt, finite_share
from migrate_agent.tools.verify.torch_unit import Original


class Count(OperatorMode):  # type: ignore[no-untyped-call]
    """Counts the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`."""
        self.number += 1
        return func(*args, **(kwargs or {}))


def others(plain: Original, make: Callable[[Changes], Original]) -> list[Original]:
    """The unit with as many numbers changed as it takes together, and with as many truth values, on the inputs of the example.

    `make` constructs it with the given changes. Raises `Undetermined` where it is too large for that.
    """
    values = plain.proposals()
    if not values:
        return []
    if elements(plain) > limits.CONFIGURATION_ELEMENTS:
        raise Undetermined(f"it holds more than {limits.CONFIGURATION_ELEMENTS:,} numbers")
    flags = {name: found for name, found in values.items() if isinstance(found[0], bool)}
    numbers = {name: found for name, found in values.items() if name not in flags}
    usual, tries = share(plain, count := Count()), min(limits.CONFIGURATION_TRIES, limits.CONFIGURATION_OPERATORS // max(count.number, 1))
    return [unit for part in (numbers, flags) if (unit := _furthest(part, make, usual, tries)) is not None]


def _furthest(values: Mapping[str, tuple[Any, ...]], make: Callable[[Changes], Original], usual: float, tries: int) -> Original | None:
    found, changes = None, dict[str, Any]()
    for proposal, _ in zip(_proposals(values, changes), range(tries), strict=False):
        unit = attempt(partial(make, {**changes, **proposal}))
        finite = attempt(partial(share, unit)) if unit is not None else None
        if finite is not None and finite >= usual:
            found = unit
            changes.update(proposal)
    return found


def elements(unit: Original) -> int:
    """Numbers in state and inputs."""
    return sum(value.size for value in unit.state().values()) + sum(leaf.value.size for leaf in unit.leaves)


def share(unit: Original, watch: Any = None) -> float:
    """The share of finite elements in its outputs for the inputs of the example. Raises what it raises."""
    return finite_share(unit.run(unit.state(), sampling.recorded_inputs(unit.leaves), "eval", watch=watch))


def _proposals(values: Mapping[str, tuple[Any, ...]], changes: Changes) -> Iterator[Changes]:
    """All truth values, or all numbers that are no whole ones, at once; then each argument by itself, until it is among the changes."""
    together = {name: found[0] for name, found in values.items() if isinstance(found[0], (bool, float))}
    if len(together) > 1:
        yield together
    for name, found in values.items():
        for value in found:
            if name not in changes:
                yield {name: value}
