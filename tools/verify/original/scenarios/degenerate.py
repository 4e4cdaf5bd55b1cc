"""Configurations at the ends of what numbers may be: rates of zero and one, and sizes at which a part of the state has one row or none. Used inside the
sandbox, on the original's side.

At a rate of exactly one torch's dropout gives zeros where `x * mask / (1 - rate)` gives NaN; `channels // reduction` is zero where the reduction is the
larger, and `max(channels // reduction, 1)` is not; a deviation of one row tells whether a bound was taken of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from migrate_agent.tools.harness.common import budgets, input_sampling
from migrate_agent.tools.harness.common.argument_changes import CALL, ENDS, LENGTH, Changes
from migrate_agent.tools.harness.torch_side.module import Original, Result
from migrate_agent.tools.verify.original.outputs import attempt, finite_share, make_targets, same
from migrate_agent.tools.verify.original.scenarios.special_sizes import resized

Make = Callable[[Changes], Original]
Values = Mapping[str, tuple[Any, ...]]


def at_ends(plain: Original, make: Make, usual: float) -> Iterator[Original]:
    """The unit with all rates at one, and with all floats at zero, as far as it is as finite in its last mode, gradients included, and gives something
    else; those that the others hide then, alone."""
    as_given = attempt(partial(_trained, plain))
    numbers = plain.floats()
    for end in ENDS if as_given is not None else ():
        names = [name for name, value in numbers.items() if (0 <= value < 1 if end else value > 0)]
        alone = {name: unit for name in names[: budgets.END_TRIES] if (unit := _taken(make, {name: end}, usual, as_given))}
        if not alone:
            continue
        together = _taken(make, dict.fromkeys(alone, end), usual, as_given) if len(alone) > 1 else None
        if together is None:
            yield from (unit for unit, _ in islice(alone.values(), 1))
            continue
        yield together[0]
        hidden = (name for name in alone if _hides(make, alone, name, end, together[1]))
        yield from (alone[name][0] for name in islice(hidden, 1))


def _hides(make: Make, names: Mapping[str, Any], name: str, end: float, together: Result) -> bool:
    """Whether the unit gives the same with all of these at the end, and with all but one."""
    without = attempt(lambda: _trained(make({other: end for other in names if other != name})))
    return without is not None and without.draws == together.draws and same(without, together)


def _taken(make: Make, changes: Changes, usual: float, as_given: Result | None) -> tuple[Original, Result] | None:
    """The unit with these changes and its result; None where it does not take them, is less finite, or gives the same as usually."""
    unit = attempt(partial(make, changes))
    result = attempt(partial(_trained, unit)) if unit is not None else None
    if unit is None or result is None or as_given is None or finite_share(result, infinite=unit.is_function) < usual:
        return None
    return None if result.tree == as_given.tree and result.draws == as_given.draws and same(result, as_given) else (unit, result)


def _trained(unit: Original) -> Result:
    """A pass in training mode with its gradients. Raises the errors of the original."""
    values = input_sampling.recorded_inputs(unit.leaves)
    return unit.run(unit.state(), values, "train", targets=partial(make_targets, seed=0))


def of_few_rows(plain: Original, make: Make, values: Values, usual: float) -> Iterator[Original]:
    """The unit with an int at one, or larger than all sizes, that gives a part of the state no row or a single one, which had several; sizes of the inputs
    change along. Those without rows come first."""
    units = [unit for changes in _sizes(plain, values) if (unit := _few(plain, make, changes, usual)) is not None]
    yield from sorted(units, key=lambda unit: min(_narrowest(unit), default=0))


def constructed_small(plain: Original, make: Make, values: Values) -> Iterator[Original]:
    """The unit with one of its ints at one, where a part of its state has a single row or none then: whether it runs so or not, its initial values tell."""
    for changes in _sizes(plain, values):
        unit = attempt(partial(make, changes)) if 1 in changes.values() else None
        if unit is not None and _narrower(unit, plain):
            yield unit


def _sizes(plain: Original, values: Values) -> list[Changes]:
    numbers = plain.ints()
    names = [name for name in numbers if name in values and not name.startswith(CALL) and not name.endswith(f".{LENGTH}")]
    largest = max([*numbers.values(), *(size for leaf in plain.leaves for size in leaf.value.shape)], default=0)
    return [{name: size} for size in (largest + 1, 1) for name in names[: budgets.SIZE_TRIES] if numbers[name] > 1]


def _few(plain: Original, make: Make, changes: Changes, usual: float) -> Original | None:
    """The unit with this size, and inputs of it where they had the other one; None where it does not run so or has no fewer rows."""
    ((name, size),) = changes.items()
    number = plain.ints()[name]
    shared = any(number in leaf.value.shape for leaf in plain.leaves)
    makers = (partial(make, changes), *([partial(resized, plain, make, changes, {number: size})] if shared and size == 1 else []))
    for maker in makers:
        unit = attempt(maker)
        if unit is None or not _narrower(unit, plain):
            continue
        result = attempt(lambda unit=unit: unit.run(unit.state(), input_sampling.recorded_inputs(unit.leaves), "eval"))  # type: ignore[misc]
        if result is not None and finite_share(result) >= usual and any(size.size for size in _outputs(result)):
            return unit
    return None


def _outputs(result: Result) -> list[Any]:
    return [value for key, value in result.arrays.items() if key.startswith("out/")]


def _narrower(unit: Original, plain: Original) -> bool:
    """Whether a part of the state has an axis of one or none that has more in the plain unit."""
    before = {name: value.shape for name, value in plain.state().items()}
    axes = ((now, then) for name, value in unit.state().items() for now, then in zip(value.shape, before.get(name, ()), strict=False))
    return any(now < 2 <= then for now, then in axes)


def _narrowest(unit: Original) -> list[int]:
    return [size for value in unit.state().values() for size in value.shape]
