"""Inputs that are joined with others, or with what the model makes of others, before a layer takes them: their sizes have to add up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_init
from migrate_agent.tools.record.guessing.values import Tensor, Value, text

SUMS = (
    (re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<now>\d+) and (?P<wanted>\d+)x\d+\)"), -1),
    (re.compile(r"expected input\[.*?\] to have (?P<wanted>\d+) channels, but got (?P<now>\d+) channels"), 1),
)
"""What a layer says of the size that it was given → the axis of that size."""
ROWS = re.compile(r"shape '\[(?P<rows>\d+), (?P<wanted>\d+)\]' is invalid for input of size (?P<numbers>\d+)")
"""What a view says of rows that have another number of columns."""
ONE_BATCH = re.compile(r"Expected size for first two dimensions of batch2 tensor to be: \[1, (\d+)\] but got: \[(?P<batch>\d+), \1\]")
FOLDED = re.compile(
    r"Sizes of tensors must match except in dimension [1-9]\d*\. Expected size (?P<one>\d+) but got size (?P<other>\d+)"
    r"|The size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\) at non-singleton dimension 0"
)
"""What an operation says of tensors that hold different numbers of samples."""
VECTORS = (
    re.compile(r"size mismatch, got input \(\d+\), mat \(\d+x(?P<now>\d+)\), vec \((?P<wanted>\d+)\)"),
    re.compile(r"first two dimensions of batch2 tensor to be: \[(?P<batch>\d+), (?P<wanted>\d+)\] but got: \[(?P=batch), (?P<now>\d+)\]"),
)
"""What a product of matrices with a vector of the module says."""
GRID = re.compile(r"expected grid to have size (?P<size>[23]) in last dimension, but got grid with sizes \[(?P<sizes>[\d, ]+)\]")
UNEQUAL = re.compile(r"The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")
OTHER_RANKS = re.compile(r"Tensors must have same number of dimensions: got \d+ and \d+")
GRADIENTS = re.compile(
    r"grad_output\[0\] has a shape of torch\.Size\(\[\d+, (?P<width>\d+)\]\) and output\[0\] has a shape of torch\.Size\(\[(?P<sizes>[\d, ]+)\]\)"
)
MOST_NUMBERS = 4
MODULE_WITHOUT_SIZES = "torch.nn.Identity()"


def joined_inputs(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The attempt with inputs that add up to what the failed layer takes, or with what else of its call has to fit the rest."""
    yield from _without_the_excess(attempt, outcome)
    yield from _parts_by_numbers(attempt, outcome)
    yield from _as_a_vector(attempt, outcome)
    yield from _of_positions(attempt, outcome)
    yield from _of_coordinates(attempt, outcome)
    yield from _of_one_sample(attempt, outcome)
    yield from _critics(attempt, outcome)
    yield from _of_one_position(attempt, outcome)
    yield from _of_one_rank(attempt, outcome)


def _sums(attempt: Attempt, outcome: Outcome) -> Iterator[tuple[int, int, int, dict[str, Tensor]]]:
    """The size that a layer was given, the one it takes, their axis, and the inputs that have this axis; nothing where one input has that size itself."""
    inputs = {
        name: value for name, value in attempt.call or () if isinstance(value, Tensor) and value.kind != "integer" and len(value.shape) > 1
    }
    for pattern, axis in SUMS:
        if match := pattern.search(outcome.error):
            now, wanted = int(match["now"]), int(match["wanted"])
            # Points have their channels last, until code moves them.
            for channels in (axis, *((-1,) if axis == 1 and all(len(tensor.shape) > 2 for tensor in inputs.values()) else ())):
                if now not in (tensor.shape[channels] for tensor in inputs.values()):
                    yield now, wanted, channels, inputs
    match = ROWS.search(outcome.error)
    if match and not int(match["numbers"]) % int(match["rows"]):
        yield int(match["numbers"]) // int(match["rows"]), int(match["wanted"]), -1, inputs


def _without_the_excess(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """One input smaller by what is too much, or larger by what is missing: noise of 100 where an embedding of 10 joins 110."""
    for now, wanted, axis, inputs in _sums(attempt, outcome):
        for name, tensor in inputs.items():
            if (size := tensor.shape[axis] + wanted - now) > 0:
                yield _replaced(attempt, {name: _sized(tensor, axis, size)})


def _parts_by_numbers(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Two inputs of one size that a layer takes joined: one as large as a number that the constructor was given, the other of the rest. Of the constructor
    `[784, 10, 64]` it may be the 10 of labels beside images of 784."""
    numbers = sorted({int(number) for _, value in attempt.init for number in re.findall(r"\b\d+\b", text(value))})
    for now, needed, axis, inputs in _sums(attempt, outcome):
        if len(inputs) == 2 and {2 * tensor.shape[axis] for tensor in inputs.values()} == {now}:
            for number in [number for number in numbers if 0 < number < needed][:MOST_NUMBERS]:
                for sizes in ((needed - number, number), (number, needed - number)):
                    yield _replaced(attempt, {name: _sized(inputs[name], axis, size) for name, size in zip(inputs, sizes, strict=True)})


def equal_parts(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Inputs of one size each, all of which a layer takes joined: each a part of what it takes."""
    for now, wanted, axis, inputs in _sums(attempt, outcome):
        sizes = {tensor.shape[axis] for tensor in inputs.values()}
        if len(inputs) > 1 and len(sizes) == 1 and sizes == {now // len(inputs)} and wanted >= len(inputs):
            part = wanted // len(inputs)
            parts = [wanted - part * (len(inputs) - 1), *[part] * (len(inputs) - 1)]
            yield _replaced(attempt, {name: _sized(inputs[name], axis, size) for name, size in zip(inputs, parts, strict=True)})


def _as_a_vector(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Inputs of one size along an axis, which are joined and then meet a vector of the module: a size by which the joined ones are as long as the vector."""
    match = next((hit for pattern in VECTORS if (hit := pattern.search(outcome.error))), None)
    now, needed = (int(match["now"]), int(match["wanted"])) if match else (0, 0)
    inputs = {name: value for name, value in attempt.call or () if isinstance(value, Tensor) and len(value.shape) > 1}
    for axis in range(1, max((len(tensor.shape) for tensor in inputs.values()), default=0)) if match and now != needed else ():
        for size in dict.fromkeys(tensor.shape[axis] for tensor in inputs.values() if axis < len(tensor.shape)):
            if size and now % size == 0 and (needed * size) % now == 0:
                alike = {name: tensor for name, tensor in inputs.items() if axis < len(tensor.shape) and tensor.shape[axis] == size}
                alike = {
                    name: tensor for name, tensor in alike.items() if len(tensor.shape) == max(len(one.shape) for one in alike.values())
                }
                yield _replaced(attempt, {name: _sized(tensor, axis, needed * size // now) for name, tensor in alike.items()})


def _of_positions(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """A matrix beside an input of more axes, as a mask is: a row for each sample, and a column for each position."""
    match = UNEQUAL.search(outcome.error)
    inputs = {name: value for name, value in attempt.call or () if isinstance(value, Tensor)} if match else {}
    main = next((tensor for tensor in inputs.values() if len(tensor.shape) > 2), None)
    for name, tensor in inputs.items() if main is not None and match else ():
        for has, wants in ((1, 2), (2, 1)) if len(tensor.shape) == 2 else ():
            if main is not None and match and int(match[has]) in tensor.shape and int(match[wants]) in main.shape[1:]:
                yield _replaced(attempt, {name: replace(tensor, shape=(main.shape[0], int(match[wants])))})


def _of_coordinates(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Rows of coordinates beside an image, where code makes a grid of them: one input at a time, then all of one shape."""
    match = GRID.search(outcome.error)
    inputs = [(name, value) for name, value in attempt.call or () if isinstance(value, Tensor) and len(value.shape) > 1] if match else []
    excess = len(match["sizes"].split(",")) - int(match["size"]) - 2 if match else 0
    for name, tensor in inputs[1:] if match else ():
        rank = len(tensor.shape) - excess
        if match and rank > 1:
            shape = (*tensor.shape[: rank - 1], int(match["size"]))
            alike = [other for other, value in inputs[1:] if value.shape == tensor.shape]
            yield _replaced(attempt, {name: replace(tensor, shape=shape)})
            if len(alike) > 1:
                yield _replaced(attempt, {other: replace(value, shape=shape) for other, value in inputs if other in alike})


def _of_one_sample(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """All inputs with one sample, where code views what it made of them as one."""
    match = ONE_BATCH.search(outcome.error)
    inputs = {name: value for name, value in attempt.call or () if isinstance(value, Tensor)} if match else {}
    single = {
        name: replace(tensor, shape=tuple(1 if match and size == int(match["batch"]) else size for size in tensor.shape))
        for name, tensor in inputs.items()
    }
    if single != inputs:
        yield _replaced(attempt, single)


def _of_one_position(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Inputs so short that a convolution, or a pooling, over them gives one position: where `view(-1, features)` took each of more positions for a sample,
    there are several times as many samples as another input has."""
    match = FOLDED.search(outcome.error)
    sizes = sorted(int(size) for size in match.groups() if size) if match else []
    inputs = {name: value for name, value in attempt.call or () if isinstance(value, Tensor)}
    if not sizes or sizes[0] < 2 or sizes[1] % sizes[0] or sizes[0] not in (tensor.shape[0] for tensor in inputs.values() if tensor.shape):
        return
    positions = sizes[1] // sizes[0]
    for name, tensor in inputs.items():
        for axis in range(1, len(tensor.shape)) if positions > 1 else ():
            size = tensor.shape[axis]
            shorter = [size - positions + 1, *([size // positions] if size % positions == 0 else [])]
            yield from (_replaced(attempt, {name: _sized(tensor, axis, length)}) for length in shorter if 0 < length < size)


def _of_one_rank(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Inputs of as many axes as what they are joined with: features of samples beside what an encoder made of images. Those that have more come first."""
    operands = outcome.operation.operands if OTHER_RANKS.search(outcome.error) else ()
    inputs = {name: value for name, value in attempt.call or () if isinstance(value, Tensor)}
    ranks = {len(operand.shape) for operand in operands}
    for operand in sorted(operands, key=lambda operand: -len(operand.shape)):
        for name in operand.origins:
            tensor = inputs.get(name)
            for other in operands if tensor is not None and len(ranks) > 1 else ():
                excess = len(operand.shape) - len(other.shape)
                if tensor is not None and excess and tensor.shape == operand.shape:
                    yield _replaced(attempt, {name: replace(tensor, shape=other.shape)})
                elif tensor is not None and 0 < excess < len(tensor.shape):
                    rank = len(tensor.shape) - excess
                    for shape in (tensor.shape[:rank], (*tensor.shape[: rank - 1], tensor.shape[-1])):
                        yield _replaced(attempt, {name: replace(tensor, shape=shape)})


def _critics(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """A module that gives each sample as many numbers as the code has gradients for, in the place of one that gives back what it takes."""
    match = GRADIENTS.search(outcome.error)
    sizes = [int(size) for size in match["sizes"].split(",")] if match else []
    count = 1
    for size in sizes[1:]:
        count *= size
    for name, value in attempt.init if match else ():
        if value == MODULE_WITHOUT_SIZES and match:
            yield set_init(attempt, name, f"torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear({count}, {match['width']}))")


def _sized(tensor: Tensor, axis: int, size: int) -> Tensor:
    shape = list(tensor.shape)
    shape[axis] = size
    return replace(tensor, shape=tuple(shape))


def _replaced(attempt: Attempt, values: Mapping[str, Value]) -> Attempt:
    return replace(attempt, call=tuple((name, values.get(name, value)) for name, value in attempt.call or ()))
