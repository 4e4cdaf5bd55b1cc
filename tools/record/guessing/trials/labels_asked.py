"""Labels and lengths, of which each sample has one: what losses and packed sequences say of another number of them; lists of one item."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace

from migrate_agent.tools.record.guessing.functions import IMAGE_LABELS, IMAGE_SCORES, LABELS, SCORES
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call
from migrate_agent.tools.record.guessing.values import Sequence, Tensor, tensors

SAMPLES = re.compile(r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)")
LENGTHS = re.compile(
    r"'lengths' argument should be a 1D|Expected `len\(lengths\)` to be equal to batch_size|`lengths` array must be sorted"
    r"|Length of all samples has to be greater than 0|object of type 'int' has no len|only integer tensors of a single element"
    r"|start \(\d+\) \+ length \(\d+\) exceeds dimension size"
)

PLACES = re.compile(r"Expected dtype int32/int64 for index|Index tensor must have the same number of dimensions as (self|input) tensor")
"""What torch says of a tensor whose numbers are places, where labels are made into rows of zeros and ones."""
TARGETS = re.compile(
    r"0D or 1D target tensor expected|Expected target size \[[\d, ]+\], got|only batches of spatial targets supported|Expected floating point type for target"
)
"""What torch says of labels of a shape that the scores do not have without their classes."""


def labels_asked(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The call with one label, or one length, for each sample, or with one item in a list."""
    yield from _labels(attempt, outcome)
    yield from _targets(attempt, outcome)
    yield from _in_items(attempt, outcome)
    yield from _places(attempt, outcome)
    yield from _lengths(attempt, outcome)
    yield from _lists_of_one(attempt, outcome)


def _labels(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Integers of the scores' shape without the axis of the classes, in place of as many numbers as there were labels."""
    match = SAMPLES.search(outcome.error)
    samples, labels = map(int, match.groups()) if match else (0, 0)
    inputs = {name: value for name, value in attempt.call or () if isinstance(value, Tensor)}
    for name, tensor in inputs.items() if match else ():
        for other, scores in inputs.items() if math.prod(tensor.shape) == labels else ():
            for shape in (
                (scores.shape[:-1], (scores.shape[0], *scores.shape[2:]), scores.shape[:1]) if other != name and scores.shape else ()
            ):
                if math.prod(shape) == samples:
                    yield set_call(attempt, name, replace(tensor, shape=shape, kind="integer"))


def _targets(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Integers of the scores' shape without the axis of the classes, in place of what the loss took for labels."""
    operands = outcome.operation.operands if TARGETS.search(outcome.error) else ()
    if len(operands) < 2 or not operands[0].shape:
        return
    scores = operands[0].shape
    classes, shape = scores[min(1, len(scores) - 1)], (*scores[:1], *scores[2:]) if len(scores) > 1 else ()
    for name in dict.fromkeys((*operands[1].origins, *outcome.place.call)):
        if isinstance(value := dict(attempt.call or ()).get(name), Tensor):
            yield set_call(attempt, name, replace(value, shape=shape, kind="integer", high=classes))


def _in_items(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Of `forward(*inputs)`, the last one as labels of the first one, which may be a list of predictions: `predictions, target = inputs`."""
    asked = SAMPLES.search(outcome.error) or TARGETS.search(outcome.error)
    for name, value in attempt.call or () if asked else ():
        match value:
            case Sequence(items=(Tensor(shape=shape) as scores, *between, Tensor() as labels)) if len(shape) > 1:
                labels = replace(labels, shape=(shape[0], *shape[2:]), kind="integer", high=shape[1])
                for first in (scores, Sequence((scores,))):
                    yield set_call(attempt, name, replace(value, items=(first, *between, labels)))


def _places(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """One place for each sample; scores of classes with labels, of as many classes as an input has channels and of a usual number, and those of images, in
    place of each pair of inputs that can be meant."""
    call = attempt.call or ()
    inputs = {name: value for name, value in call if isinstance(value, Tensor)} if PLACES.search(outcome.error) else {}
    order = list(inputs)
    for name in sorted(inputs, key=lambda name: (name not in outcome.place.call, -order.index(name))):
        if inputs[name].shape:
            yield set_call(attempt, name, replace(inputs[name], shape=inputs[name].shape[:1], kind="integer"))
        for other, tensor in inputs.items():
            classes = tensor.shape[1] if len(tensor.shape) > 1 else LABELS.high
            likely = (replace(SCORES, shape=(SCORES.shape[0], classes)), replace(LABELS, high=classes))
            for scores, labels in (likely, (SCORES, LABELS), (IMAGE_SCORES, IMAGE_LABELS)) if other != name else ():
                yield set_call(set_call(attempt, other, scores), name, labels)


def _lengths(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Lengths in falling order, none longer than the sequences: plain numbers, then a tensor, in place of each argument that can be meant."""
    if not LENGTHS.search(outcome.error):
        return
    by_name = [name for name, _ in attempt.call or () if re.search(r"len|size|count|num", name)]
    for name in dict.fromkeys([*by_name, *(name for name, _ in attempt.call or () if name in outcome.place.call)]):
        others = [tensor for other, value in attempt.call or () if other != name for tensor in tensors(value)]
        sequences = [tensor.shape for tensor in others if len(tensor.shape) == 3 or (len(tensor.shape) == 2 and tensor.kind == "integer")]
        if sequences:
            longest = min(shape[1] for shape in sequences)
            lengths = f"[{', '.join(str(max(longest - 2 * at, 1)) for at in range(sequences[0][0]))}]"
            yield set_call(attempt, name, lengths)
            yield set_call(attempt, name, f"torch.tensor({lengths})")


def _lists_of_one(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """A list of one tensor where code refuses several: as many styles as layers to mix, one by default."""
    for name, value in attempt.call or () if outcome.error.startswith(("ValueError", "AssertionError", "IndexError")) else ():
        if isinstance(value, Sequence) and len(value.items) > 1 and all(isinstance(item, Tensor) for item in value.items):
            yield set_call(attempt, name, replace(value, items=value.items[:1]))
