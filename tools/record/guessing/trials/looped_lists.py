"""Lists that a call goes through, `for a in support`: of tensors as the failed operation takes them, and as many as the constructor was told of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.trials.equations_asked import shapes_asked
from migrate_agent.tools.record.guessing.trials.joined_inputs import SUMS
from migrate_agent.tools.record.guessing.trials.origins import Operand, Operation, argument_of
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call
from migrate_agent.tools.record.guessing.values import Sequence as Items
from migrate_agent.tools.record.guessing.values import Tensor, Value, change_tensors

PRODUCTS = frozenset({"matmul", "mm", "bmm", "spmm", "__matmul__", "__rmatmul__"})
COUNTS = (2, 3, 4, 1)
COUNTING = frozenset("n num number count len length no nr".split())
"""Words beside what is counted: `support_len`, `num_supports`."""
THROUGH = frozenset({"enumerate", "zip", "reversed", "list", "tuple"})


def looped_lists(attempt: Attempt, outcome: Outcome, called: Any, numbers: Mapping[str, float]) -> Iterator[Attempt]:
    """The attempt with tensors of other shapes, or another number of them, in the lists that the call goes through; and with the shapes that a failed
    equation asks of other arguments. `numbers` are those of the constructor, by name."""
    names = looped(called)
    asked = [*((*pair, False) for pair in shapes_asked(outcome.operation)), *((*pair, True) for pair in _squares(outcome.operation))]
    for operand, shape, of_loops in asked:
        for name in dict.fromkeys(argument_of(path) for path in operand.origins):
            value = dict(attempt.call or ()).get(name)
            if value is None or (of_loops and name not in names):
                continue
            if (mended := _with_shape(value, operand, shape, name in names, _counts(name, numbers))) != value:
                yield set_call(attempt, name, mended)
    for name, value in attempt.call or ():
        if name in names and not _counts(name, numbers) and (items := _items(value)):
            yield from _of_another_number(attempt, outcome, name, items)


def _of_another_number(attempt: Attempt, outcome: Outcome, looped_name: str, items: Sequence[Value]) -> Iterator[Attempt]:
    """Where a layer takes what was joined of an input and of what the loop made of it: lists of another number, with that part for the input of which
    as many add up to what the layer takes."""
    match, axis = next(((match, axis) for pattern, axis in SUMS if (match := pattern.search(outcome.error))), (None, 0))
    for name, value in attempt.call or () if match else ():
        now, wanted = (int(match["now"]), int(match["wanted"])) if match else (0, 0)
        if name == looped_name or not isinstance(value, Tensor) or len(value.shape) < 2 or now % value.shape[axis]:
            continue
        parts = now // value.shape[axis]
        for count, beside in ((count, beside) for count in COUNTS for beside in (1, 0)):
            if (parts - beside) % len(items) == 0 and wanted % (whole := (parts - beside) // len(items) * count + beside or 1) == 0:
                shape = list(value.shape)
                shape[axis] = wanted // whole
                yield set_call(set_call(attempt, name, replace(value, shape=tuple(shape))), looped_name, Items((items[0],) * count))


def looped(called: Any) -> frozenset[str]:
    """The names that code goes through: `for a in xs`, `for i, a in enumerate(xs)`, `[f(a) for a in xs]`."""
    rows = [node.iter for node in (nodes_of(called) if called is not None else ()) if isinstance(node, ast.For | ast.comprehension)]
    return frozenset(name for row in rows for name in _gone_through(row))


def _gone_through(row: ast.expr) -> Iterator[str]:
    match row:
        case ast.Name(id=name):
            yield name
        case ast.Call(func=ast.Name(id=function), args=args) if function in THROUGH:
            for one in args:
                yield from _gone_through(one)


def _squares(operation: Operation) -> Iterator[tuple[Operand, tuple[int, ...]]]:
    """The operands of a failed product of matrices, each as the square matrix that the other one fits."""
    if operation.name in PRODUCTS and len(operation.operands) == 2 and all(operand.shape for operand in operation.operands):
        left_operand, right_operand = operation.operands
        yield left_operand, (right_operand.shape[-2 if len(right_operand.shape) > 1 else -1],) * 2
        yield right_operand, (left_operand.shape[-1],) * 2


def _with_shape(value: Value, operand: Operand, shape: tuple[int, ...], is_looped: bool, counts: Sequence[int]) -> Value:
    """The argument with tensors of this shape where the operand came from: all alike in a list; a list in place of a tensor that is gone through."""
    if is_looped and isinstance(value, Tensor) and value.shape[1:] == operand.shape:
        return Items((replace(value, shape=shape),) * (counts[0] if counts else value.shape[0]))
    if is_looped and isinstance(value, Items):
        items = tuple(change_tensors(item, lambda tensor: _reshaped(tensor, operand.shape, shape)) for item in value.items)
        return replace(value, items=items[:1] * counts[0] if counts and len(set(items)) == 1 else items)
    return _reshaped(value, operand.shape, shape) if isinstance(value, Tensor) and operand.shape != shape else value


def _reshaped(tensor: Tensor, now: tuple[int, ...], shape_asked: tuple[int, ...]) -> Tensor:
    return replace(tensor, shape=shape_asked) if tensor.shape == now else tensor


def _items(value: Value) -> tuple[Value, ...]:
    """The tensors that a loop over an argument goes through, where they are alike."""
    if isinstance(value, Tensor):
        return (replace(value, shape=value.shape[1:]),) * value.shape[0] if len(value.shape) > 1 else ()
    alike = isinstance(value, Items) and len(set(value.items)) == 1 and isinstance(value.items[0], Tensor)
    return value.items if alike and isinstance(value, Items) else ()


def _counts(name: str, numbers: Mapping[str, float]) -> tuple[int, ...]:
    """The numbers of the constructor that say how many there are of what an argument is named after."""
    stem = name.lower().rstrip("s")
    words = {other: {word.rstrip("s") for word in other.lower().split("_")} for other in numbers}
    counted = [other for other, parts in words.items() if stem in parts and parts & COUNTING]
    return tuple(int(numbers[other]) for other in counted if 0 < numbers[other] <= 8 and type(numbers[other]) is int)
