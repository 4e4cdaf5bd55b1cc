"""Finds what the original refuses on purpose, by a `raise` or an `assert` of its own: a size beyond a limit, an unknown name, a number that does not fit.

Only refusals that shapes and plain arguments decide: under `jit` no port can raise for the values of arrays. Used inside the sandbox, on the
original's side.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files
from migrate_agent.tools.harness.common.argument_changes import LENGTH, Changes, words
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.harness.torch_side.precision import OperatorMode
from migrate_agent.tools.verify.original.outputs import one_line
from migrate_agent.tools.verify.original.scenarios import source_literals
from migrate_agent.tools.verify.original.scenarios.long_inputs import proposals
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

UNKNOWN = "no such choice"
"""A string that no code compares with."""
READS = frozenset({"_local_scalar_dense", "is_nonzero", "equal"})
"""Operators that give Python the value of an array."""
UNCHANGED: Changes = MappingProxyType({})
Make = Callable[[Changes], Original]


class Trial(NamedTuple):
    """What to call the unit with: other arguments, or other inputs (the recorded ones where None); and the same in words."""

    words: str
    changes: Changes = UNCHANGED
    values: Sequence[Array] | None = None


class Reads(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that notes whether Python was given the value of an array, which may have decided."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.any = False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`."""
        self.any = self.any or func.overloadpacket.__name__ in READS
        return func(*args, **(kwargs or {}))


@dataclass
class Refusals:
    """What the original refuses, by the place that raises, as JSON; the inputs of each call are written as those of scenarios are."""

    writer: ScenarioWriter
    rows: list[dict[str, Any]] = field(default_factory=list)
    places: set[tuple[str, int]] = field(default_factory=set)

    def add(self, trial: Trial, statement: tuple[str, int], error: Exception, tree: Any, constructed: bool) -> None:
        """Add what this trial raised; where the constructor did, other inputs too: a rewrite that constructs may raise on some of them only by chance."""
        leaves, name = self.writer.original.leaves, f"refused-{len(self.places)}"
        self.places.add(statement)
        line = f"{Path(statement[0]).relative_to(self.writer.lines.root)}:{statement[1]}"
        facts = {
            "error": f"{one_line(error)} at {line}",
            "changes": dict(trial.changes),
            "tree": tree,
            "leaf_dtypes": [leaf.dtype for leaf in leaves],
        }
        calls = [("", trial.values or input_sampling.recorded_inputs(leaves))]
        calls += [] if constructed else list(islice(_by_chance(self.writer.original, trial.changes), budgets.REFUSED_INPUTS))
        for number, (label, values) in enumerate(calls):
            row = f"{name}-{number}" if number else name
            arrays = {f"in/{index}": value for index, value in enumerate(values)}
            tensor_files.save(self.writer.folder / f"given/inputs/{row}.safetensors", arrays)
            self.rows.append({"name": row, "words": trial.words + label, "place": name, **facts})


def refusals(writer: ScenarioWriter, make: Make) -> list[dict[str, Any]]:
    """What the original refuses, one trial for each place that raises: `name`, `words`, `place`, `error`, `changes` and the call's `tree`. Of what the
    constructor refuses, a row for each of several inputs, with the same `place`.

    `make` constructs the unit with changed arguments.
    """
    refused = Refusals(writer)
    for trial in islice(_trials(writer), budgets.REFUSAL_TRIES):
        unit, tree, watch = None, writer.original.tree, Reads()
        try:
            unit = make(trial.changes) if trial.changes else writer.original
            tree = unit.tree
            unit.run(unit.state(), trial.values or input_sampling.recorded_inputs(unit.leaves), "eval", watch=watch)
        except Exception as error:
            statement = _on_purpose(error, writer.lines.root)
            if statement is not None and statement not in refused.places and not watch.any:
                refused.add(trial, statement, error, tree, unit is not None)
        if len(refused.places) == budgets.REFUSALS:
            break
    return refused.rows


def _by_chance(unit: Original, changes: Changes) -> Iterator[tuple[str, list[Array]]]:
    """What to add to the words, and inputs on which a constructor's refused numbers may do by chance: sizes that they are become the other number,
    and all lengths what such numbers divide without a rest."""
    before, shapes = unit.ints(), [leaf.value.shape for leaf in unit.leaves]
    numbers = {**before, **{name: value for name, value in changes.items() if type(value) is int}}
    renamed = {before[name]: value for name, value in numbers.items() if value != before.get(name) and value > 0 and name in before}
    batch = next((shape[:1] for shape in shapes if shape), ())
    lengths = [size for size in dict.fromkeys(chain(*shapes)) if size not in {*before.values(), *batch}]
    whole = sorted(size for size in {*_divided([*numbers.values()])} if 1 < size <= budgets.REFUSED_SIZE)
    tables = [dict.fromkeys(sizes, size) for sizes in (lengths, batch) for size in whole]
    for table in ({}, *tables):
        for base in (renamed, {}):
            values = input_sampling.resized(unit.leaves, {**base, **table}, None, (0,))
            if values is not None and sum(value.size for value in values) <= budgets.CONFIGURATION_ELEMENTS:
                yield f", inputs of shapes {', '.join(str(value.shape) for value in values)}", values


def _divided(numbers: Sequence[int]) -> Iterator[int]:
    """Products of a number and what it goes into another without its rest, as heads and the width of each."""
    least = {number for number in numbers if number > 0}
    return (divisor * (number // divisor) for divisor in least for number in least)


def _trials(writer: ScenarioWriter) -> Iterator[Trial]:
    """Strings that nothing knows, other numbers, then sizes beyond the numbers of the code; the likeliest of each kind first."""
    unit = writer.original
    changes = [{name: UNKNOWN} for name in unit.strings()]
    options = {name: values for name, values in unit.proposals().items() if not name.endswith(f".{LENGTH}")}
    ints = {name: values for name, values in options.items() if type(values[0]) is int}
    floats = [name for name, values in options.items() if type(values[0]) is float]
    changes += [{name: values[0]} for name, values in ints.items()]
    sizes = (Trial(f"inputs of {label}", values=values) for label, values in proposals(writer))
    yield from (Trial(words(change), change) for change in changes[: budgets.REFUSAL_TRIES // 4])
    yield from islice(sizes, budgets.REFUSAL_TRIES // 4)
    if source_literals.takes_remainders(unit.native):
        yield from (Trial(words(change), change) for change in islice(_with_rests(ints, unit.ints()), budgets.REFUSAL_TRIES // 4))
    for name in (*ints, *floats):
        yield Trial(words({name: -1}), {name: -1})
    for label, _, values, _ in input_sampling.shape_variants(unit.leaves, writer.base):
        yield Trial(f"inputs of {label}", values=values)


def _with_rests(options: Mapping[str, Sequence[int]], numbers: Mapping[str, int]) -> Iterator[Changes]:
    """Other ints, each alone, and pairs of them where one is 1, which divides all: a rest is refused where one stands alone."""
    yield from ({name: value} for name, values in options.items() for value in values[1:])
    ones = [name for name, values in options.items() if numbers.get(name) == 1]
    yield from ({one: 2, name: 2 * numbers[name] + 1} for one in ones for name in options if name not in ones and name in numbers)


def _on_purpose(error: Exception, root: str) -> tuple[str, int] | None:
    """File and line of the `raise` or `assert` below the root that the error comes from; None where something else raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not frames[-1].filename.startswith(root) or frames[-1].lineno is None:
        return None
    file, line = frames[-1].filename, frames[-1].lineno
    return (file, line) if any(first <= line <= last for first, last in _refusing(file)) else None


@cache
def _refusing(file: str) -> tuple[tuple[int, int], ...]:
    """The first and the last line of each statement of a file that raises or asserts."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8-sig"))
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.Raise, ast.Assert)))
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in nodes)
