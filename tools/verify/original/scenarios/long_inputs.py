"""Inputs longer than numbers of the original's code (a window, a largest length, buckets of distances), which have no effect on the
example's sizes. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from migrate_agent.tools.harness.common import budgets, input_sampling
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.torch_side.precision import OperatorMode
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt
from migrate_agent.tools.verify.original.scenarios import source_literals
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

if TYPE_CHECKING:
    from migrate_agent.tools.harness.torch_side.line_coverage import Lines
    from migrate_agent.tools.harness.torch_side.module import Original

Decision = tuple[str, int, int, str, bool]
"""File, first line of the function, offset in its bytecode, operator, and its decision."""
COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
BOUNDS = frozenset({"minimum", "maximum", "clamp", "clamp_", "clamp_min", "clamp_max", "tril", "triu", "tril_", "triu_", "remainder"})
"""Operators that return their first argument unchanged unless a bound applies."""


class Decisions(OperatorMode):
    """A mode that records the decisions of comparisons, bounds and slices, by their position in the repository's code."""

    def __init__(self, root: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: set[Decision] = set()
        self.operators = 0
        self.wide = False
        """Whether an int64 result exceeded 32 bits."""
        self.seconds = 0.0
        """Of computing."""
        self._root = root

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`."""
        self.operators += 1
        name = func.overloadpacket.__name__
        bounds = name in BOUNDS and isinstance(args[0], torch.Tensor)
        # An operator in place overwrites the argument that its result is compared with.
        before = args[0].clone() if bounds and name.endswith("_") else args[0] if args else None
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dtype == torch.int64 and result.numel() and not self.wide:
            self.wide = not -(2**31) <= int(result.min()) <= int(result.max()) < 2**31
        if name in COMPARISONS and isinstance(result, torch.Tensor):
            self._note(name, {bool(value) for value in (result.any(), result.all())} if result.numel() else ())
        elif bounds:
            self._note(name, [before.shape == result.shape and not torch.equal(before, result)])  # type: ignore[union-attr,arg-type]
        elif name == "slice" and isinstance(before, torch.Tensor):
            self._note(name, [before.shape != result.shape])
        return result

    def _note(self, name: str, decided: Any) -> None:
        frame = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(self._root):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            self.found |= {(frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_lasti, name, value) for value in decided}


def longer(writer: ScenarioWriter) -> None:
    """Add inputs whose sizes equal or just exceed ints of the code, where a decision is new or other lines run."""
    unit, lines = writer.original, writer.lines
    usual = attempt(lambda: decided(unit, lines, writer.values(0)))
    if usual is None:
        return
    decisions, most = set(usual.found), max(budgets.LONG_OPERATORS, usual.operators * 5 // 4)
    stops = source_literals.uses(unit.native, source_literals.STOPS)
    always, tries, accepted = source_literals.counts(unit.native), 0, 0
    for label, values in proposals(writer):
        if tries == budgets.LONG_TRIES or accepted == budgets.LONG_SIZES:
            return
        tries += 1
        watches = list[Decisions]()
        other = attempt(lambda values=values, watches=watches: lines.more(lambda: watches.append(decided(unit, lines, values))))  # type: ignore[misc]
        # A loop over the longer axis makes a program that takes minutes to compile.
        if not watches or watches[0].operators > most:
            continue
        if watches[0].seconds > budgets.LONG_SECONDS:
            writer.late(f"{Role.LONG}-{label}")
            continue
        new = watches[0].found
        native = watches[0].wide  # whole numbers that jax keeps in 32 bits
        if (always or other or not new <= decisions) and writer.add(
            f"{Role.LONG}-{label}", Role.LONG, "eval", 0, values, native=native, runs=1
        ):
            if stops:
                writer.add(
                    f"gradient-{writer.modes[0]}-{Role.LONG}-{label}", Role.GRADIENT, writer.modes[0], 0, values, gradient=True, runs=1
                )
            accepted += 1
            decisions |= new
            always = False


def beyond(writer: ScenarioWriter) -> None:
    """Add inputs larger than the numbers that the candidate compares sizes with: a larger batch, and each other axis longer, with gradients."""
    unit, mode = writer.original, writer.modes[0]
    usual = attempt(lambda: decided(unit, writer.lines, writer.values(0)))
    leading = next((leaf.value.shape for leaf in unit.leaves if leaf.value.ndim), ())
    if usual is None:
        return
    tried = {(number, axis) for number in writer.sizes[-budgets.BEYOND :] for axis in range(min(len(leading), budgets.BEYOND))}
    for number, axis in sorted(tried, reverse=True):
        sizes = {leading[axis]: number + 1}
        elements = sum(map(math.prod, input_sampling.resized_shapes(unit.leaves, sizes, 0 if axis == 0 else None)))
        if leading[axis] > number or elements > budgets.BEYOND_ELEMENTS:
            continue
        values = input_sampling.resized(unit.leaves, sizes, 0 if axis == 0 else None, (writer.base,))
        watch = attempt(lambda values=values: decided(unit, writer.lines, values)) if values is not None else None  # type: ignore[misc]
        # A loop over the longer axis makes a program that takes minutes to compile.
        if values is None or watch is None or watch.operators > max(budgets.LONG_OPERATORS, usual.operators * 5 // 4):
            continue
        label = f"{Role.LONG}-axis{axis}-{number + 1}"
        if watch.seconds > budgets.LONG_SECONDS:
            writer.late(label)
        elif writer.attempt(label, Role.LONG, 0, values, native=True, runs=1):
            writer.attempt(f"gradient-{mode}-{label}", Role.GRADIENT, 0, values, mode=mode, gradient=True, native=True, runs=1)


def wide(writer: ScenarioWriter, values: Sequence[Array]) -> bool:
    """Whether ints on these inputs exceed 32 bits, which jax uses by default."""
    watch = attempt(lambda: decided(writer.original, writer.lines, values))
    return watch is not None and watch.wide


def decided(unit: Original, lines: Lines, values: Sequence[Array] | None = None) -> Decisions:
    """The decisions on these inputs, or on the recorded ones. Raises the errors of the original."""
    watch, state = Decisions(lines.root), unit.state()
    began = time.process_time()
    unit.run(state, input_sampling.recorded_inputs(unit.leaves) if values is None else values, "eval", watch=watch)
    watch.seconds = time.process_time() - began
    return watch


def proposals(writer: ScenarioWriter) -> Iterator[tuple[str, list[Array]]]:
    """Labels and inputs, the longest first."""
    leaves = writer.original.leaves
    # A call of a large unit takes seconds, and as many times as many as its inputs are larger.
    now = sum(leaf.value.size for leaf in leaves)
    most = min(budgets.LONG_ELEMENTS, budgets.LONG_GROWTH * now) if writer.is_large else budgets.LONG_ELEMENTS
    leading = next((leaf.value.shape for leaf in leaves if leaf.value.ndim), ())
    sizes: list[tuple[int, int | None]] = [(size, None) for size in dict.fromkeys(leading[1:])]
    sizes += [(size, axis) for axis, size in enumerate(leading) if axis and leading[1:].count(size) > 1]
    numbers = {int(value) for value in source_literals.own_numbers(writer.original.native) if value == int(value)}
    for number in sorted(numbers, reverse=True):
        for size, axis in sizes:
            for other in (number + 2, number):
                elements = sum(map(math.prod, input_sampling.resized_shapes(leaves, {size: other}, axis)))
                if not size < other <= budgets.LONG + 2 or elements > most:
                    continue
                values = input_sampling.resized(leaves, {size: other}, axis, (writer.base,))
                if values is not None:
                    yield f"size{size}-{other}" if axis is None else f"axis{axis}-{other}", values
