"""Configurations with special ints: a size that the inputs have too, or that sizes of them are tied to, changed on both, and zero. Used inside the
sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from migrate_agent.tools.harness.common import budgets, input_sampling
from migrate_agent.tools.harness.common.argument_changes import LENGTH, Changes
from migrate_agent.tools.harness.common.tied_sizes import tied
from migrate_agent.tools.harness.torch_side.module import Original, Result
from migrate_agent.tools.verify.original.outputs import attempt, finite_share, same
from migrate_agent.tools.verify.original.scenarios.sizes import stays_small

Make = Callable[[Changes], Original]
Proposal = TypeVar("Proposal")


def with_inputs(plain: Original, make: Make, values: Mapping[str, tuple[Any, ...]], usual: float) -> Iterator[Original]:
    """The unit with other sizes that its inputs have as well (`d_model`, and the last axis): those of the inputs change along.

    All arguments with the number change together, or else one of them. Each number gives one configuration at most.
    """
    for number, names in _shared(plain, values).items():
        sizes = sorted({value for name in names for value in values[name] if type(value) is int and value > 1})
        groups = [names, *([name] for name in names if len(names) > 1)]
        changes = [dict.fromkeys(group, size) for group in groups for size in sizes][: budgets.SIZED_TRIES]
        yield from islice(_accepted(plain, partial(_with_size, plain, make, number), changes, usual), 1)


def with_tied(plain: Original, make: Make, values: Mapping[str, tuple[Any, ...]], usual: float) -> Iterator[Original]:
    """The unit with another number that sizes of its inputs are tied to by a relation, such as `side` beside side * side tokens: these change along.

    Numbers that it takes alone, or with inputs of the size, are left out.
    """
    sizes = list(dict.fromkeys(size for leaf in plain.leaves for size in leaf.value.shape if size > 1))
    numbers = [(name, number) for name, number in plain.ints().items() if name in values and number > 1]
    for name, number in numbers[: budgets.TIED_NUMBERS]:
        options = (value for value in sorted({*values[name]}) if value > 1 and attempt(partial(make, {name: value})) is not None)
        new = next(options, None)
        if new is None or any(_runs(unit) for unit in _alone(plain, make, number, {name: new})):
            continue
        tied_tables = tied(number, new, [size for size in sizes if size != number])
        tables = islice((table for table in tied_tables if stays_small(plain.leaves, table)), budgets.TIED_TRIES)
        yield from islice(_accepted(plain, partial(resized, plain, make, {name: new}), tables, usual), 1)


def _alone(plain: Original, make: Make, number: int, changes: Changes) -> Iterator[Original]:
    """The unit with these changes on the example's inputs, and on inputs of the size."""
    yield from filter(None, (attempt(partial(make, changes)), attempt(partial(_with_size, plain, make, number, changes))))


def with_zeros(plain: Original, make: Make, values: Mapping[str, tuple[Any, ...]], usual: float) -> Iterator[Original]:
    """The unit with each int that may be zero at zero, where that often means that something is left out."""
    names = [name for name, options in values.items() if type(options[0]) is int and not name.endswith(f".{LENGTH}")]
    return _accepted(plain, make, [{name: 0} for name in names[: budgets.ZERO_TRIES]], usual)


def _shared(plain: Original, values: Mapping[str, tuple[Any, ...]]) -> dict[int, list[str]]:
    """Size of an axis of the inputs, the last axis first → the arguments with that number."""
    sizes = [size for leaf in plain.leaves for size in reversed(leaf.value.shape)]
    numbers = {name: number for name, number in plain.ints().items() if name in values}
    named = {size: [name for name, number in numbers.items() if number == size] for size in dict.fromkeys(sizes) if size > 1}
    return {size: names for size, names in named.items() if names}


def resized(plain: Original, make: Make, changes: Changes, sizes: Mapping[int, int]) -> Original:
    """The unit with these changes, and inputs with sizes replaced by the table. Raises the errors of the constructor."""
    unit = make(changes)
    arrays = input_sampling.resized(plain.leaves, sizes, None, (next(iter(sizes)),))
    unit.leaves = input_sampling.with_values(plain.leaves, arrays or ())
    return unit


def _with_size(plain: Original, make: Make, number: int, changes: Changes) -> Original:
    """The unit with these changes, and inputs with the first changed number in the place of this size."""
    return resized(plain, make, changes, {number: next(iter(changes.values()))})


def _accepted(plain: Original, make: Callable[[Proposal], Original], proposed: Iterable[Proposal], usual: float) -> Iterator[Original]:
    """The units that run, as finite as usual, with elements in each parameter and in some result, and that give something else."""
    as_given = attempt(partial(_result, plain))
    for proposal in proposed:
        unit = attempt(partial(make, proposal))
        if unit is None or not all(value.size for value in unit.state().values()):
            continue
        result = attempt(partial(_result, unit))
        if result is None or as_given is None or finite_share(result, infinite=unit.is_function) < usual:
            continue
        outputs = [value for key, value in result.arrays.items() if key.startswith("out/")]
        if any(value.size for value in outputs) and not (result.tree == as_given.tree and same(result, as_given)):
            yield unit


def _runs(unit: Original) -> bool:
    return attempt(partial(_result, unit)) is not None


def _result(unit: Original) -> Result:
    return unit.run(unit.state(), input_sampling.recorded_inputs(unit.leaves), "eval")
