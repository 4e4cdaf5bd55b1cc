"""Inputs of other shapes than the example's. Used inside the sandbox, on the original's side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from migrate_agent.tools.harness.common import budgets, input_sampling, trees
from migrate_agent.tools.harness.common.compare_arrays import rms
from migrate_agent.tools.harness.common.input_sampling import Extreme, Leaf, ShapeKind
from migrate_agent.tools.harness.common.tied_sizes import tied
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt
from migrate_agent.tools.verify.original.scenarios import source_literals
from migrate_agent.tools.verify.original.scenarios.long_inputs import beyond, longer, wide
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

SAME_ROWS = 1e-9
"""Relative tolerance within which outputs of stacked inputs must equal the stacked outputs, for a leading axis to count as a batch."""


def other_sizes(writer: ScenarioWriter) -> None:
    """Add other batch sizes and lengths that the original accepts: some in training mode where that differs, one with gradients."""
    accepted, trained = Counter[ShapeKind](), set[ShapeKind]()
    for label, kind, values, beside in input_sampling.shape_variants(writer.original.leaves, writer.base):
        if beside is not None and attempt(lambda beside=beside: writer.once(writer.states[0], beside, "eval")) is None:  # type: ignore[misc]
            continue
        native = kind == ShapeKind.SIZE and wide(writer, values)
        if _has_room(kind, accepted) and writer.add(
            f"shape-{label}",
            Role.SHAPE,
            "eval",
            0,
            values,
            native=native,
            runs=1,
            extreme=Extreme.EMPTY if kind == ShapeKind.EMPTY else Extreme.NONE,
        ):
            accepted[kind] += 1
            if kind in (ShapeKind.BATCH, ShapeKind.SIZE, ShapeKind.ONE) and kind not in trained:
                trained.add(kind)
                if writer.trains():
                    writer.add(f"shape-train-{label}", Role.SHAPE, "train", 0, values, runs=1)
                if kind == ShapeKind.BATCH:
                    mode = writer.modes[0]
                    writer.add(f"gradient-{mode}-{label}", Role.GRADIENT_SHAPE, mode, 0, values, gradient=True, runs=1)
    _alone(writer)
    together(writer, budgets.MAX_TIED)
    _multiples(writer)
    longer(writer)
    beyond(writer)


def _has_room(kind: ShapeKind, accepted: Counter[ShapeKind]) -> bool:
    """Whether another variant of this kind is compared: an empty batch, a few with an axis of size 1, and a few of all others."""
    if kind == ShapeKind.ONE:
        return accepted[kind] < budgets.MAX_ONES
    others = accepted.total() - accepted[ShapeKind.ONE] - accepted[ShapeKind.EMPTY]
    return kind == ShapeKind.EMPTY or others < budgets.MAX_SHAPES


def _multiples(writer: ScenarioWriter) -> None:
    """Add sizes that are multiples of a module's int, and one more, where the code takes remainders."""
    if not source_literals.takes_remainders(writer.original.native):
        return
    accepted = 0
    for label, values in input_sampling.multiples(writer.original.leaves, source_literals.divisors(writer.original.native), writer.base):
        accepted += writer.add(f"shape-{label}", Role.SHAPE, "eval", 0, values, runs=1)
        if accepted == budgets.MULTIPLES:
            return


def _alone(writer: ScenarioWriter) -> None:
    """Add inputs of which one alone is longer, where two axes of the example have the same size."""
    accepted = 0
    for label, values in input_sampling.alone_variants(writer.original.leaves, writer.base)[: budgets.ALONE_TRIES]:
        if attempt(lambda values=values: writer.once(writer.states[0], values, "eval")) is None:  # type: ignore[misc]
            continue
        accepted += writer.add(f"shape-{label}", Role.SHAPE, "eval", 0, values, runs=1)
        if accepted == budgets.MAX_ALONE:
            return


def together(writer: ScenarioWriter, most: int) -> None:
    """Add up to so many tables of sizes that the original refuses alone and takes together with others, or one smaller: a relation ties them."""
    leaves, accepted = writer.original.leaves, 0
    fixed = {*writer.original.ints().values()}
    sizes = sorted(dict.fromkeys(size for leaf in leaves for size in leaf.value.shape if size > 1), key=fixed.__contains__)
    refused = [size for size in sizes if not any(_takes(writer, {size: other}) for other in (size + 1, size // 2) if other > 1)]
    for table in _tables(refused[: budgets.TIED_SIZES])[: budgets.TIED_TRIES]:
        if _takes(writer, table):
            label = "-".join(f"size{size}-{new}" for size, new in table.items())
            values = input_sampling.resized(leaves, table, None, (writer.base,))
            accepted += writer.attempt(f"shape-tied-{label}", Role.SHAPE, 0, values or (), runs=1)
        if accepted == most:
            return


def _tables(sizes: Sequence[int]) -> list[Mapping[int, int]]:
    """Each size one smaller, each twice as large, then each larger with others along, in turn for each size; each table once."""
    return [*{tuple(sorted(table.items())): table for table in _proposed(sizes)}.values()]


def _proposed(sizes: Sequence[int]) -> Iterator[Mapping[int, int]]:
    yield from ({size: size - 1} for size in sizes if size > 2)  # an axis of 1 may be broadcast by chance
    yield from ({size: 2 * size} for size in sizes)
    turns = [tied(size, new, [other for other in sizes if other != size]) for size in sizes for new in (size + 1, 2 * size)]
    yield from (table for row in zip_longest(*turns) for table in row if table is not None)


def stays_small(leaves: Sequence[Leaf], sizes: Mapping[int, int]) -> bool:
    """Whether inputs with sizes replaced by the table have few elements, or a few times as many as they have now: an image whose sides grow with the width
    of a layer would be of gigabytes."""
    now = sum(leaf.value.size for leaf in leaves)
    elements = sum(map(math.prod, input_sampling.resized_shapes(leaves, sizes, None)))
    return elements <= max(budgets.TIED_ELEMENTS, budgets.TIED_GROWTH * now)


def _takes(writer: ScenarioWriter, table: Mapping[int, int]) -> bool:
    """Whether the original takes its inputs with other sizes."""
    if not stays_small(writer.original.leaves, table):
        return False
    values = input_sampling.resized(writer.original.leaves, table, None, (writer.base,))
    return values is not None and attempt(lambda: writer.once(writer.states[0], values, "eval")) is not None


def another_rank(writer: ScenarioWriter) -> None:
    """Add inputs with one more leading axis, where the original treats it as a batch: its code counts axes from the end."""
    state, first = writer.states[0], writer.values(0)
    apart = [attempt(lambda seed=seed: writer.once(state, writer.values(seed), "eval")) for seed in (0, 1)]  # type: ignore[misc]
    second = 1 if apart[1] is not None else 0
    one, other = apart[0], apart[second]
    if one is None or other is None:
        return
    for values in input_sampling.stacked(first, writer.values(second)):
        both = attempt(lambda values=values: writer.once(state, values, "eval"))  # type: ignore[misc]
        if both is not None and _stacks(both, one, other):
            writer.add("rank", Role.RANK, "eval", 0, values, runs=1)
            return


def _stacks(both: Result, one: Result, other: Result) -> bool:
    """Whether each output is the stack of two runs' outputs."""
    outputs = [key for key in both.arrays if key.startswith("out/")]
    if not outputs or trees.skeleton(both.tree) != trees.skeleton(one.tree) or trees.skeleton(one.tree) != trees.skeleton(other.tree):
        return False
    for key in outputs:
        rows = (one.arrays[key], other.arrays[key])
        if rows[0].shape != rows[1].shape or both.arrays[key].shape != (2, *rows[0].shape):
            return False
        expected = np.stack(rows)
        if not np.allclose(both.arrays[key], expected, rtol=SAME_ROWS, atol=SAME_ROWS * rms(expected), equal_nan=True):
            return False
    return True
