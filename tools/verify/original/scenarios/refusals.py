"""Finds what the original refuses on purpose, by a `raise` or an `assert` of its own: a size beyond a limit, an unknown name, a number that does not fit.

Only refusals that shapes and plain arguments decide: under `jit` no port can raise for the values of arrays. Used inside the sandbox, on the
original's side.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files
from migrate_agent.tools.harness.common.argument_changes import LENGTH, Changes, words
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.torch_side.module import Original
from migrate_agent.tools.harness.torch_side.precision import OperatorMode
from migrate_agent.tools.verify.original.outputs import one_line
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


def refusals(writer: ScenarioWriter, make: Make) -> list[dict[str, Any]]:
    """What the original refuses, one trial for each place that raises: `name`, `words`, `error`, `changes` and the call's `tree`.

    The inputs are written as those of scenarios are. `make` constructs the unit with changed arguments.
    """
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for trial in islice(_trials(writer), budgets.REFUSAL_TRIES):
        tree, values = writer.original.tree, trial.values
        watch = Reads()
        try:
            unit = make(trial.changes) if trial.changes else writer.original
            tree = unit.tree
            unit.run(unit.state(), values or input_sampling.recorded_inputs(unit.leaves), "eval", watch=watch)
        except Exception as error:
            statement = _on_purpose(error, writer.lines.root)
            if statement is None or statement in rows or watch.any:
                continue
            name = f"refused-{len(rows)}"
            inputs = values or input_sampling.recorded_inputs(writer.original.leaves)
            tensor_files.save(
                writer.folder / f"given/inputs/{name}.safetensors", {f"in/{index}": value for index, value in enumerate(inputs)}
            )
            rows[statement] = {
                "name": name,
                "words": trial.words,
                "error": f"{one_line(error)} at {Path(statement[0]).relative_to(writer.lines.root)}:{statement[1]}",
                "changes": dict(trial.changes),
                "tree": tree,
                "leaf_dtypes": [leaf.dtype for leaf in writer.original.leaves],
            }
        if len(rows) == budgets.REFUSALS:
            break
    return list(rows.values())


def _trials(writer: ScenarioWriter) -> Iterator[Trial]:
    """Strings that nothing knows, other numbers, then sizes beyond the numbers of the code; the likeliest of each kind first."""
    unit = writer.original
    changes = [{name: UNKNOWN} for name in unit.strings()]
    options = {name: values for name, values in unit.proposals().items() if not name.endswith(f".{LENGTH}")}
    ints = {name: values for name, values in options.items() if type(values[0]) is int}
    floats = [name for name, values in options.items() if type(values[0]) is float]
    changes += [{name: values[0]} for name, values in ints.items()]
    sizes = (Trial(f"inputs of {label}", values=values) for label, values in proposals(writer))
    yield from (Trial(words(change), change) for change in changes[: budgets.REFUSAL_TRIES // 3])
    yield from islice(sizes, budgets.REFUSAL_TRIES // 3)
    for name in (*ints, *floats):
        yield Trial(words({name: -1}), {name: -1})
    for label, _, values, _ in input_sampling.shape_variants(unit.leaves, writer.base):
        yield Trial(f"inputs of {label}", values=values)


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
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.Raise, ast.Assert)))
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in nodes)
