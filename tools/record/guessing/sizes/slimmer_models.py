"""Constructions with smaller numbers, for models that take long: a verification repeats a call a hundred times, and what it compares is the code, not
its sizes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter
from operator import itemgetter

from migrate_agent.tools.record.guessing.trials.trial import Attempt
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors, tensors, text

WIDE = 8
"""Numbers from this one on are made smaller all at once."""
DEEP = 12
"""Numbers up to this one may say how many layers there are: two show what more of them do."""
MANY_ROWS, FEW_ROWS = 1000, 16
"""Numbers from this one on may say how many rows a table has, of classes or of words; and how many do as well."""
LEAST = 2
FACTORS = (4, 2)
INTEGERS = ("integer", "whole array")
"""Kinds of tensors whose elements are places in a table."""


def slimmer(attempt: Attempt, parameters: Sequence[Parameter], classes: Mapping[str, type] | None = None) -> Iterator[Attempt]:
    """The attempt with a quarter, then half, of all large numbers that its constructor is given or has by default; then of each number by itself, the
    largest first, also wherever the inputs have it as a size.

    `classes`: those by name of which objects are made with numbers of their own: `Config()` has those of its constructor's defaults.
    """
    written = {name: with_own_defaults(source, classes or {}) for name, source in _texts(attempt, parameters).items()}
    numbers = sorted({number for value in written.values() for number in _numbers(value)}, reverse=True)
    inputs = [tensor for _, value in attempt.call or () for tensor in tensors(value)]
    sizes = {size for tensor in inputs for size in tensor.shape}
    bounds = {tensor.high for tensor in inputs if tensor.kind in INTEGERS}
    for factor in FACTORS:
        wide = {
            number: FEW_ROWS if number >= MANY_ROWS else number // factor
            for number in numbers
            if number >= WIDE and number not in sizes and (number not in bounds or number >= MANY_ROWS)
        }
        yield from _changed(attempt, written, wide, of_bounds=True)
    for number in numbers:
        for fewer in _fewer(number):
            yield from _changed(attempt, written, {number: fewer})
            if number in sizes:
                yield from _changed(attempt, written, {number: fewer}, of_inputs=True)


def _fewer(number: int) -> list[int]:
    fewer = {number // factor for factor in FACTORS} | ({LEAST} if number <= DEEP else {FEW_ROWS} if number >= MANY_ROWS else set())
    return sorted(one for one in fewer if LEAST <= one < number)


def with_defaults(attempt: Attempt, smaller: Attempt, parameters: Sequence[Parameter]) -> Attempt:
    """The attempt that also gives the defaults that the smaller one has other values for."""
    names = {name for name, _ in attempt.init}
    defaults = {one.name: repr(one.default) for one in parameters}
    return replace(attempt, init=(*attempt.init, *((name, defaults[name]) for name, _ in smaller.init if name not in names)))


def _texts(attempt: Attempt, parameters: Sequence[Parameter]) -> dict[str, str]:
    """The arguments of a constructor that are plain text, and its defaults."""
    defaults = {
        one.name: repr(one.default) for one in parameters if one.default is not one.empty and isinstance(one.default, (int, tuple, list))
    }
    plain = {name: text(value) for name, value in attempt.init if not any(tensors(value))}
    return {name: source for name, source in (defaults | plain).items() if name in plain or name not in dict(attempt.init)}


def with_own_defaults(source: str, classes: Mapping[str, type]) -> str:
    """The text of an object with the whole numbers that its constructor has by default: `Config(depth=12, width=768)` of `Config()`."""
    try:
        node = ast.parse(source, mode="eval").body
    except SyntaxError:
        return source
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in classes:
            if any(isinstance(one, ast.Starred) for one in args) or any(one.arg is None for one in keywords):
                return source
        case _:
            return source
    try:
        parameters = [*inspect.signature(classes[name]).parameters.values()]
    except (TypeError, ValueError):
        return source
    given = {keyword.arg for keyword in keywords}
    wide = [one for one in parameters[len(args) :] if type(one.default) is int and one.default > LEAST and one.name not in given]
    added = [ast.keyword(one.name, ast.Constant(one.default)) for one in wide]
    return ast.unparse(ast.Call(node.func, args, [*keywords, *added])) if added else source


def _numbers(source: str) -> Iterator[int]:
    """The whole numbers in an expression that can be made smaller."""
    yield from (number for number, _, _ in _places(source) if number > LEAST)


def _places(source: str) -> list[tuple[int, int, int]]:
    """The whole numbers in an expression, outside of its words, with where each begins and ends."""
    try:
        tree = ast.parse(source, mode="eval") if source.isascii() and "\n" not in source else None
    except SyntaxError:
        return []
    numbers = []
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Constant) and type(node.value) is int:
            numbers.append((node.value, node.col_offset, node.end_col_offset or node.col_offset))
    return numbers


def _changed(
    attempt: Attempt, written: Mapping[str, str], smaller: Mapping[int, int], *, of_inputs: bool = False, of_bounds: bool = False
) -> Iterator[Attempt]:
    """The attempt with other numbers in the place of these, where it has them; also as sizes of its inputs, or as what their integers lie below."""
    texts = {name: _with_numbers(source, smaller) for name, source in written.items()}
    changed = {name: value for name, value in texts.items() if value != written[name]}
    if not changed:
        return
    init = tuple({**dict(attempt.init), **changed}.items())
    call = attempt.call or ()
    if of_inputs:
        call = tuple((name, change_tensors(value, lambda tensor: _with_sizes(tensor, smaller))) for name, value in call)
    if of_bounds:
        call = tuple((name, change_tensors(value, lambda tensor: _below(tensor, smaller))) for name, value in call)
    yield replace(attempt, init=init, call=call)


def _with_sizes(tensor: Tensor, smaller: Mapping[int, int]) -> Tensor:
    return replace(tensor, shape=tuple(smaller.get(size, size) for size in tensor.shape))


def _below(tensor: Tensor, smaller: Mapping[int, int]) -> Tensor:
    return replace(tensor, high=smaller.get(tensor.high, tensor.high)) if tensor.kind in INTEGERS else tensor


def _with_numbers(source: str, smaller: Mapping[int, int]) -> str:
    """An expression with other numbers in the place of these."""
    for number, begin, end in sorted(_places(source), key=itemgetter(1), reverse=True):
        source = f"{source[:begin]}{smaller[number]}{source[end:]}" if number in smaller else source
    return source
