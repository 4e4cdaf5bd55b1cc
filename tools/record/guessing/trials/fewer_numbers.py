"""Forms of an attempt that runs with fewer numbers in its inputs: every check of the verifier repeats the example many times."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, change_tensors, tensors

LARGE = 64
"""Sizes of an input beyond this one are tried smaller, all that are equal at once; so are widths of constructors from this one on."""
LARGE_IMAGE = 32_768
"""Numbers in an image with which a convolution takes long."""
SMALLEST_SIDE = 4
REPEATED = re.compile(r"layer|depth|block|stage|repeat|(n|num|number)_?\w*groups?$")
"""Names of how often parts of a model are repeated."""
FEW_PARTS = 2
MOST_AXES = 3
"""Axes that are made shorter by themselves."""


def smaller(attempt: Attempt) -> Iterator[Attempt]:
    """The attempt with the largest size of its inputs smaller, wherever they have it behind the first two dimensions; the smallest first."""
    sizes = [size for _, value in attempt.call or () for tensor in tensors(value) for size in tensor.shape[2:]]
    largest = max(sizes, default=0)
    for size in (32, LARGE, 128) if largest > LARGE else ():
        if size < largest:
            yield replace(attempt, call=tuple((name, _resized(value, largest, size)) for name, value in attempt.call or ()))


def shallower(attempt: Attempt) -> Iterator[Attempt]:
    """The attempt with two in the place of each number by which its constructor, or a configuration that it is given, says how often parts are repeated;
    first of all of them, then of each name alone."""
    names = dict.fromkeys(name for value in attempt.init for name in _repeated(*value))
    for chosen in dict.fromkeys([tuple(names), *((name,) for name in names)]) if names else ():
        yield replace(attempt, init=tuple((name, _of_few_parts(name, value, chosen)) for name, value in attempt.init))


def _repeated(name: str, value: Value) -> Iterator[str]:
    """The names of large numbers in a value that say how often something is repeated."""
    if isinstance(value, Fields):
        for inner, item in value.items:
            yield from _repeated(inner, item)
    elif isinstance(value, str) and value.isdigit() and int(value) > FEW_PARTS and REPEATED.search(name):
        yield name


def _of_few_parts(name: str, value: Value, chosen: Collection[str]) -> Value:
    if isinstance(value, Fields):
        return replace(value, items=tuple((inner, _of_few_parts(inner, item, chosen)) for inner, item in value.items))
    return str(FEW_PARTS) if name in chosen and [*_repeated(name, value)] else value


def narrower(attempt: Attempt) -> Iterator[Attempt]:
    """The attempt with an eighth, and a quarter, of the widths that the constructor was given, where its images are large: convolutions take long."""
    images = [tensor.shape for _, value in attempt.call or () for tensor in tensors(value) if len(tensor.shape) >= 4]
    widths = {text: int(text) for _, text in attempt.init if isinstance(text, str) and text.isdigit() and LARGE <= int(text) <= 1024}
    for factor in (8, 4) if widths and any(math.prod(shape) >= LARGE_IMAGE for shape in images) else ():
        smaller_ones = {text: str(width // factor) for text, width in widths.items()}
        init = tuple((name, smaller_ones.get(value, value) if isinstance(value, str) else value) for name, value in attempt.init)
        call = attempt.call or ()
        for width in widths.values():
            call = tuple((name, _of_width(value, width, width // factor)) for name, value in call)
        yield Attempt(init, call)


def flatter(attempt: Attempt) -> Iterator[Attempt]:
    """The attempt without the axes between the first and the last of what is larger than an image, then with one of them: layers that look at the
    last axis alone take any others."""
    call = attempt.call or ()
    if any(math.prod(tensor.shape) > LARGE_IMAGE for _, value in call for tensor in tensors(value)):
        for between in ((), (16,)):
            yield replace(attempt, call=tuple((name, _with_axes_between(value, between)) for name, value in call))


def _with_axes_between(value: Value, between: tuple[int, ...]) -> Value:
    def change(tensor: Tensor) -> Tensor:
        small = math.prod(tensor.shape) <= LARGE_IMAGE or len(tensor.shape) < 2 + len(between)
        return tensor if small else replace(tensor, shape=(tensor.shape[0], *between, tensor.shape[-1]))

    return change_tensors(value, change)


def halved(attempt: Attempt) -> Iterator[Attempt]:
    """The attempt with a quarter and a half of all sizes of its images, for calls that take long."""
    for factor in (4, 2):
        call = tuple((name, change_tensors(value, lambda tensor: _smaller_sides(tensor, factor))) for name, value in attempt.call or ())  # noqa: B023
        if call != attempt.call:
            yield replace(attempt, call=call)


def _smaller_sides(tensor: Tensor, factor: int) -> Tensor:
    sides = tensor.shape[2:]
    if len(sides) < 2 or any(side % factor or side // factor < SMALLEST_SIDE for side in sides):
        return tensor
    return replace(tensor, shape=(*tensor.shape[:2], *(side // factor for side in sides)))


def _of_width(value: Value, before: int, after: int) -> Value:
    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(*tensor.shape[:1], *(after if size == before else size for size in tensor.shape[1:])))

    return change_tensors(value, change)


def _resized(value: Value, before: int, after: int) -> Value:
    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=(*tensor.shape[:2], *(after if size == before else size for size in tensor.shape[2:])))

    return change_tensors(value, change)


def axis_by_axis(attempt: Attempt) -> Iterator[Attempt]:
    """The attempt with an eighth and half of one size wherever the inputs have it, then in one axis alone; the largest size first. What stands first
    or last may be large as well: `(steps, batch, width)`."""
    call = attempt.call or ()
    sized_axes = {(size, axis) for _, value in call for tensor in tensors(value) for axis, size in enumerate(tensor.shape)}
    for size in sorted({size for size, _ in sized_axes}, reverse=True):
        axes = sorted(axis for other, axis in sized_axes if other == size)
        for chosen in dict.fromkeys([tuple(axes), *((axis,) for axis in axes)]):
            for factor in (8, 2):
                if size % factor == 0 and size // factor >= SMALLEST_SIDE:
                    yield replace(attempt, call=tuple((name, _in_axes(value, chosen, size, size // factor)) for name, value in call))


def _in_axes(value: Value, axes: tuple[int, ...], before: int, after: int) -> Value:
    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tuple(after if axis in axes and size == before else size for axis, size in enumerate(tensor.shape)))

    return change_tensors(value, change)
