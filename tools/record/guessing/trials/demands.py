"""What the operation that failed asks of the arguments that its tensors came from: integers below the rows of a table, an axis that is long enough."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from migrate_agent.tools.record.guessing.adapt import set_rank
from migrate_agent.tools.record.guessing.sizes.given_sizes import of_asked_sizes, of_split_sizes
from migrate_agent.tools.record.guessing.sizes.made_tensors import made_sizes
from migrate_agent.tools.record.guessing.sizes.rectangles import rectangles
from migrate_agent.tools.record.guessing.sizes.sides import LARGEST_SIDE, sides_in_ratio, sides_of_patches, sides_of_windows
from migrate_agent.tools.record.guessing.sizes.sliced_sizes import of_parts
from migrate_agent.tools.record.guessing.trials.origins import Operand, argument_of
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call, set_init
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, change_tensors
from migrate_agent.tools.record.guessing.values import Sequence as Items

MOST_ROWS = 1_000_000
MOST_COLUMNS = 512
MOST_PARTS = 4


def demands(attempt: Attempt, outcome: Outcome, init: Mapping[str, inspect.Parameter]) -> Iterator[Attempt]:
    """The call with what the failed operation asks for, in the arguments at fault alone, then in all of them at once. `init`: what the constructor takes."""
    yield from _of_equal_shapes(attempt, outcome)
    yield from of_asked_sizes(attempt, outcome)
    yield from of_split_sizes(attempt, outcome)
    yield from _of_keys(attempt, outcome, init)
    yield from of_parts(attempt, outcome)
    yield from made_sizes(attempt, outcome)
    yield from _spelled_ranks(attempt, outcome)
    yield from _of_one_rank(attempt, outcome)
    yield from _without_one_axis(attempt, outcome)
    yield from _without_last_axes(attempt, outcome)
    yield from _as_others_of_a_join(attempt, outcome)
    yield from _fewer_rows(attempt, outcome)
    yield from _whole_numbers(attempt, outcome)
    yield from _longer_axis(attempt, outcome)
    yield from _folded_channels(attempt, outcome)
    yield from _channels_in_ratio(attempt, outcome)
    yield from _other_lengths(attempt, outcome)
    yield from rectangles(attempt, outcome)
    yield from _fitting_images(attempt, outcome, init)
    yield from _joined_channels(attempt, outcome)
    yield from _plain_numbers(attempt, outcome)
    yield from _tables_for_numbers(attempt, outcome)


def _of_keys(attempt: Attempt, outcome: Outcome, init: Mapping[str, inspect.Parameter]) -> Iterator[Attempt]:
    """The keys of a table in the place of one that it has not."""
    for name, keys in outcome.place.keys:
        yield from (set_call(attempt, name, key) for key in keys if name in outcome.place.call)
        yield from (set_init(attempt, name, key) for key in keys if name in init)


TARGET_SIZES = re.compile(r"target size \(torch\.Size\(\[([\d, ]+)\]\)\).*?input size \(torch\.Size\(\[([\d, ]+)\]\)\)")
"""What losses say of two tensors that should be alike."""


def _of_equal_shapes(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Tensors of one shape in place of another, where a loss or an assertion compares the two: all arguments that have the first, then the second."""
    match = TARGET_SIZES.search(outcome.error)
    said = [tuple(int(size) for size in text.split(",")) for text in match.groups()] if match else []
    shapes = said or list(outcome.place.shapes)

    def change(tensor: Tensor, now: tuple[int, ...], wanted: tuple[int, ...]) -> Tensor:
        return replace(tensor, shape=wanted) if tensor.shape == now else tensor

    for now, wanted in ((shapes[0], shapes[1]), (shapes[1], shapes[0])) if len(shapes) == 2 else ():
        call = tuple((name, change_tensors(value, lambda tensor: change(tensor, now, wanted))) for name, value in attempt.call or ())  # noqa: B023
        if call != attempt.call and all(size > 0 for size in wanted):
            yield replace(attempt, call=call)


SPELLED = re.compile(
    r"\b(?:shape[ds]?|sizes?|dimensions|layout|form)\b[^\[(]{0,12}[\[(]\s*([A-Za-z]\w*(?:\s*[,x×]\s*[A-Za-z0-9]\w*)+)\s*[\])]"
)
"""A shape in the words of a message: `query must have shape [B, L, heads, dim]`."""


def _spelled_ranks(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Tensors with as many axes as a message spells out: those that the refusing condition looks at, then all of them."""
    match = SPELLED.search(outcome.error)
    if match is None:
        return
    rank = len(match[1].split(",") if "," in match[1] else re.split(r"[x×]", match[1]))  # `max_len` has an x of its own

    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tuple(set_rank(list(tensor.shape), [rank]))) if tensor.shape else tensor

    named = [name for name in dict(attempt.call or ()) if name in outcome.place.call]
    for names in (named, [*dict(attempt.call or ())]):
        yield replace(
            attempt, call=tuple((name, change_tensors(value, change) if name in names else value) for name, value in attempt.call or ())
        )


RANKS = (
    (re.compile(r"must be a matrix|expected a matrix|should be 2-D|must be 2D|expects a 2D tensor|for (mm|t|addmm)\b"), 2),
    (re.compile(r"1D tensors? expected|must be a vector|expected a 1D tensor"), 1),
)
"""What torch says of operands with another number of axes than an operation takes → how many it takes."""


def _of_one_rank(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Matrices or vectors where an operation takes no others: each argument that its operands came from, then all tensors of the call."""
    rank = next((rank for pattern, rank in RANKS if pattern.search(outcome.error)), 0)
    call = attempt.call or ()

    def change(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tensor.shape[-rank:]) if len(tensor.shape) > rank else tensor

    named = [name for name, _ in call if name in (outcome.operation.origins or outcome.place.call)]
    for names in dict.fromkeys((tuple(named), tuple(name for name, _ in call))) if rank else ():
        yield replace(attempt, call=tuple((name, change_tensors(value, change) if name in names else value) for name, value in call))


UNLIKE = re.compile(r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)")


def _without_one_axis(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where two operands do not broadcast, the arguments that the one of more axes alone came from, with one axis less: one label for each image."""
    operands = sorted(outcome.operation.operands, key=lambda operand: len(operand.shape))
    if len(operands) != 2 or len(operands[0].shape) == len(operands[1].shape) or not UNLIKE.search(outcome.error):
        return
    for path in operands[1].origins:
        if path not in operands[0].origins and argument_of(path) in dict(attempt.call or ()):
            yield _changed_at(attempt, path, lambda tensor: replace(tensor, shape=tensor.shape[:-1]) if len(tensor.shape) > 1 else tensor)


VIEWED = re.compile(r"shape '\[([\d, ]+)\]' is invalid for input of size \d+")


def _without_last_axes(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """A tensor of the sizes that it is viewed by, without the ones behind them: `c.view(n, k, 1, 1)` of (n, k), `target.view(n, h, w, 1)` of (n, h, w)."""
    match, operands = VIEWED.search(outcome.error), outcome.operation.operands
    if match is None or len(operands) != 1:
        return
    sizes = tuple(int(size) for size in match[1].split(","))
    while sizes[-1:] == (1,):
        sizes = sizes[:-1]
    shape = operands[0].shape
    for path in operands[0].origins if sizes and sizes != shape and 0 not in sizes else ():
        if argument_of(path) in dict(attempt.call or ()):
            yield _changed_at(attempt, path, lambda tensor: replace(tensor, shape=sizes) if tensor.shape == shape else tensor)


UNLIKE_OTHERS = re.compile(
    r"Sizes of tensors must match except in dimension \d+\. Expected size (\d+) but got size (\d+) for tensor number (\d+)"
)


def _as_others_of_a_join(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The size that the other tensors of a `torch.cat` have: of the arguments that this one alone came from, their first axis as long as it is."""
    match, operands = UNLIKE_OTHERS.search(outcome.error), outcome.operation.operands
    expected, actual, number = map(int, match.groups()) if match else (0, 0, 0)
    if match is None or number >= len(operands):
        return
    others = {path for at, operand in enumerate(operands) if at != number for path in operand.origins}
    for path in operands[number].origins:
        if path not in others and argument_of(path) in dict(attempt.call or ()):
            yield _changed_at(attempt, path, lambda tensor: _first_of_size(tensor, actual, expected))


def _first_of_size(tensor: Tensor, actual: int, expected: int) -> Tensor:
    if actual not in tensor.shape:
        return tensor
    at = tensor.shape.index(actual)
    return replace(tensor, shape=(*tensor.shape[:at], expected, *tensor.shape[at + 1 :]))


def _fewer_rows(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Indices that lie within the table, the classes or the axis that they are looked up in."""
    size = _rows(outcome)
    if 0 < size <= MOST_ROWS:
        yield from _with_indices(attempt, outcome, lambda tensor: _below(tensor, size))


def _whole_numbers(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Integers where floats are looked up, so few of them that they name rows of a small table."""
    name, operands = outcome.operation.name, outcome.operation.operands
    if not INTEGERS.search(outcome.error) or name not in (*LABELLED, "embedding", "__getitem__"):
        return
    table = operands[1:2] if name == "embedding" else operands[:1]
    sizes = [size for operand in table for size in operand.shape[: 1 if name == "embedding" else None]]
    rows = min([size for size in sizes if size > 1] or [2])
    yield from _with_indices(attempt, outcome, lambda tensor: _below(tensor, rows))
    yield from _in_parts(attempt, outcome, rows)


def _in_parts(attempt: Attempt, outcome: Outcome, rows: int) -> Iterator[Attempt]:
    """A tuple in place of a tensor that the code unpacks, where one part is looked up in another: of rows and integers."""
    origins = [set(operand.origins) for operand in outcome.operation.operands[:2]]
    for name, value in attempt.call or ():
        if (
            isinstance(value, Tensor)
            and value.shape
            and len(origins) == 2
            and all(name in one for one in origins)
            and 2 <= value.shape[0] <= MOST_PARTS
        ):
            part = replace(value, shape=value.shape[1:])
            yield set_call(attempt, name, Items((*[part] * (value.shape[0] - 1), _below(part, rows)), "()"))


INTEGERS = re.compile(
    r"[Ee]xpected dtype int|used as indices must be|scalar type Long|type Long|dtype int64|types?: Long|expected index|to be Long|should be Long|"
    r"a long tensor for index|should be type int64"
)


def _with_indices(attempt: Attempt, outcome: Outcome, change: Callable[[Tensor], Tensor]) -> Iterator[Attempt]:
    """The arguments that the indices came from, changed: each alone, then all at once."""
    operands, name = outcome.operation.operands, outcome.operation.name
    # A table comes from no argument; of scores and labels the labels are second, and what is indexed comes before its indices.
    indices = [operand for operand in (operands[1:] if name in (*LABELLED, "__getitem__") else operands[:1]) if operand.origins]
    paths = [
        path
        for path in dict.fromkeys(path for operand in indices for path in operand.origins)
        if argument_of(path) in dict(attempt.call or ())
    ]
    changed = attempt
    for path in paths:
        yield _changed_at(attempt, path, change)
        changed = _changed_at(changed, path, change)
    if len(paths) > 1:
        yield changed


def _changed_at(attempt: Attempt, path: str, change: Callable[[Tensor], Tensor]) -> Attempt:
    """The attempt with the tensor at the place of an origin changed."""
    name = argument_of(path)
    return set_call(attempt, name, _inside(dict(attempt.call or ())[name], path.split(".")[1:], change))


def _inside(value: Value, path: Sequence[str], change: Callable[[Tensor], Tensor]) -> Value:
    if not path:
        return change_tensors(value, change)
    if isinstance(value, Items):
        return replace(
            value, items=tuple(_inside(item, path[1:], change) if str(at) == path[0] else item for at, item in enumerate(value.items))
        )
    if isinstance(value, Fields):
        return replace(value, items=tuple((key, _inside(item, path[1:], change) if key == path[0] else item) for key, item in value.items))
    return value


def _below(tensor: Tensor, size: int) -> Tensor:
    return replace(tensor, kind="integer", high=min(size, tensor.high) if tensor.kind == "integer" else size)


LABELLED = (
    *("cross_entropy", "nll_loss", "multi_margin_loss", "gather", "index_select", "take", "take_along_dim"),
    *(
        "scatter",
        "scatter_",
        "scatter_add",
        "scatter_add_",
        "index_add",
        "index_add_",
        "index_fill",
        "index_fill_",
        "index_copy",
        "index_copy_",
    ),
)
"""Operations whose second tensor is of indices."""


def _rows(outcome: Outcome) -> int:
    """How many rows the indices of the failed operation may name; 0 where indices are not what failed."""
    operands, error = outcome.operation.operands, outcome.error
    if outcome.operation.name == "embedding" and len(operands) > 1 and operands[1].shape:
        return operands[1].shape[0] if "index out of range" in error or "indices" in error else 0
    if re.search(r"Target -?\d+ is out of bounds", error) and operands and len(operands[0].shape) > 1:
        return operands[0].shape[1]
    match = re.search(r"index -?\d+ is out of bounds for dimension \d+ with size (\d+)", error)
    return int(match[1]) if match and len(operands) > 1 else 0


def _longer_axis(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """An axis with the place that a number is looked up at: `x[:, :, 3]` of two columns."""
    match = re.search(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)", outcome.error)
    if match is None or len(outcome.operation.operands) != 1 or not 0 <= int(match[1]) < MOST_COLUMNS:
        return
    position, axis, size = map(int, match.groups())
    operand = outcome.operation.operands[0]
    for path in operand.origins:
        if argument_of(path) in dict(attempt.call or ()):
            yield _changed_at(attempt, path, lambda tensor: _long_enough(tensor, operand, axis, size, position + 1))


def _long_enough(tensor: Tensor, operand: Operand, axis: int, size: int, length: int) -> Tensor:
    """The tensor with this axis of the operand made `length` long: the same axis where the shapes are equal, else the last one of that size."""
    if tensor.shape == operand.shape:
        at = axis
    elif size in tensor.shape:
        at = len(tensor.shape) - 1 - tensor.shape[::-1].index(size)
    else:
        return tensor
    return replace(tensor, shape=(*tensor.shape[:at], length, *tensor.shape[at + 1 :]))


UNEQUAL = re.compile(r"(?:Expected size|size of tensor a \() ?(\d+)\)? (?:but got|must match the) size (?:of tensor b \()?(\d+)")
BROADCAST = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)")
SMALL = re.compile(
    r"Output size is too small|Expected more than 1 spatial element|[Kk]ernel size can't be greater than actual input size|Padding size should be less than"
)
IMAGE_SIZES = (32, 16, 64)
LARGER_SIZES = (96, 128, 188, 224, 256)
LONGER_SEQUENCES = (512, 2048, 8192)
PADDING = re.compile(r"(use_)?pad(ding|ded)?")
JOINED = re.compile(r"expected input\[.*?\] to have (\d+) channels, but got (\d+) channels")


def _folded_channels(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The channels from which those of an operand were folded, in the ratio that a parameter or constant beside it asks for: 4 in place of 8
    where `x.view(b, 4 * c, h // 2, w // 2)` meets one of 16."""
    match = BROADCAST.search(outcome.error)
    operands = outcome.operation.operands
    if match is None or len(operands) != 2 or bool(operands[0].origins) == bool(operands[1].origins):
        return
    first, second, axis = map(int, match.groups())
    actual, wanted = (first, second) if operands[0].origins else (second, first)
    operand = operands[0] if operands[0].origins else operands[1]
    behind = max(len(one.shape) for one in operands) - axis
    for path in operand.origins if behind <= len(operand.shape) else ():
        if argument_of(path) in dict(attempt.call or ()):
            yield _changed_at(attempt, path, lambda tensor: _in_ratio(tensor, len(tensor.shape) - behind, actual, wanted))


def _channels_in_ratio(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """The channels from which a layer's were made, in the ratio that it asks for: 3 in place of 16 where `(x, x - mean)` has 32 and 6 are asked for; also of
    several axes that were folded into one, `x.view(b, -1, n)`."""
    match = JOINED.search(outcome.error)
    asked_for, actual = map(int, match.groups()) if match else (0, 0)
    paths = [path for operand in outcome.operation.operands for path in operand.origins] if match else []
    for path in dict.fromkeys(path for path in paths if argument_of(path) in dict(attempt.call or ())):
        for behind in (1, 2, 3):
            yield _changed_at(attempt, path, lambda tensor: _folded(tensor, behind, actual, asked_for))  # noqa: B023
        yield _changed_at(attempt, path, lambda tensor: _in_ratio(tensor, len(tensor.shape) - 1, actual, asked_for))


def _folded(tensor: Tensor, axes: int, actual: int, asked_for: int) -> Tensor:
    """The tensor with one axis in place of so many behind the first; as it was where there are too few, or no whole number is in the ratio."""
    numbers = math.prod(tensor.shape[1 : axes + 1])
    if not actual or len(tensor.shape) < axes + 2 or numbers * asked_for % actual:
        return tensor
    return replace(tensor, shape=(tensor.shape[0], numbers * asked_for // actual, *tensor.shape[axes + 1 :]))


def _in_ratio(tensor: Tensor, at: int, actual: int, wanted: int) -> Tensor:
    """The tensor with one axis other than the first longer or shorter, in the ratio of two sizes; as it was where no whole number is."""
    if (
        not actual
        or not 0 < at < len(tensor.shape)
        or tensor.shape[at] * wanted % actual
        or tensor.shape[at] * wanted // actual > MOST_COLUMNS
    ):
        return tensor
    return replace(tensor, shape=(*tensor.shape[:at], tensor.shape[at] * wanted // actual, *tensor.shape[at + 1 :]))


def _fitting_images(attempt: Attempt, outcome: Outcome, init: Mapping[str, inspect.Parameter]) -> Iterator[Attempt]:
    """Where what was halved and doubled again does not fit what is beside it, or nothing is left of it: one image twice or half as large as the others,
    or images of powers of two, also of a model that pads; then larger ones, and sequences that dilated layers leave something of."""
    match = UNEQUAL.search(outcome.error)
    sizes = tuple(map(int, match.groups())) if match else ()
    if (not sizes or 0 in sizes) and not SMALL.search(outcome.error):
        return
    images = _images(attempt)
    for first, second in (sizes, sizes[::-1]) if len(images) > 1 and sizes and max(sizes) % min(sizes) == 0 else ():
        for name, image in images.items():
            scaled = tuple(size * second // first for size in image.shape[2:])
            if 0 not in scaled:
                yield _changed_at(attempt, name, lambda tensor: replace(tensor, shape=(*tensor.shape[:2], *scaled)))  # noqa: B023
    yield from (_with_sides(attempt, images, size) for size in sides_of_patches(images, sizes))
    yield from (_with_sides(attempt, images, size) for size in sides_in_ratio(images, sizes))
    yield from (_with_sides(attempt, images, size) for size in sides_of_windows(images, outcome.error))
    padded = attempt
    for name, parameter in init.items():
        if PADDING.fullmatch(name) and name not in dict(attempt.init) and parameter.default in (0, False):
            padded = set_init(padded, name, "True" if parameter.default is False else "1")
    for model in dict.fromkeys((attempt, padded)) if images else ():
        yield from (_with_sides(model, images, size) for size in IMAGE_SIZES)
    if SMALL.search(outcome.error):
        yield from (_with_sides(attempt, images, size) for size in LARGER_SIZES if images)
        sequences = bool(images) and all(len(image.shape) == 3 for image in images.values())
        yield from (_with_sides(attempt, images, size) for size in LONGER_SEQUENCES if sequences)


LENGTHS = re.compile(
    r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<now>\d+) and (?P<then>\d+)x\d+\)"
    r"|size of tensor a \((?P<a>\d+)\) must match the size of tensor b \((?P<b>\d+)\)"
    r"|shape '\[(?P<samples>-1|\d+), (?P<features>[\d, ]+)\]' is invalid for input of size (?P<numbers>\d+)"
)
STRIDES = (32, 16, 8, 4, 2, 1)
"""By how much what layers leave of an image may be smaller than the image."""


def _other_lengths(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Images and sequences of which as much is left as a layer takes of them at once: 28 where 32 leave 32 · 8 · 8 numbers of which 32 · 6 · 6 are wanted."""
    match = LENGTHS.search(outcome.error)
    images = _images(attempt)
    spatial = {size for image in images.values() for size in image.shape[2:]}
    ranks = {len(image.shape) - 2 for image in images.values()}
    if match is None or len(spatial) != 1 or len(ranks) != 1:
        return
    (side,), (rank,) = spatial, ranks
    ordered = match["a"] is None  # how much is left, and how much is wanted
    if match["numbers"]:
        samples = next(iter(images.values())).shape[0]
        if int(match["samples"]) not in (-1, samples) or int(match["numbers"]) % samples:
            return
        counts = [int(match["numbers"]) // samples, math.prod(map(int, match["features"].split(",")))]
    else:
        counts = [int(match[name]) for name in (("now", "then") if ordered else ("a", "b"))]
    if side in counts or any(count in image.shape[1:] for image in images.values() for count in counts):
        return  # a size of the input itself is at fault
    for now, then in (counts,) if ordered else (counts, counts[::-1]):
        left, wanted = _lengths_of(now, then, rank)
        # Layers without padding leave less than an image divided by their strides.
        for stride in [stride for stride in STRIDES if left and stride * left <= side] if left != wanted else ():
            other = side + stride * (wanted - left)
            if 0 < other <= LARGEST_SIDE:
                yield _with_sides(attempt, images, other)


def _lengths_of(now: int, then: int, rank: int) -> tuple[int, int]:
    """The smallest lengths of an axis of which `rank` axes and one number of channels make both counts; zeros where there are none."""
    for channels in range(math.gcd(now, then), 0, -1):
        if math.gcd(now, then) % channels == 0:
            lengths = [round((count // channels) ** (1 / rank)) for count in (now, then)]
            if all(length**rank * channels == count for length, count in zip(lengths, (now, then), strict=True)):
                return lengths[0], lengths[1]
    return 0, 0


def _images(attempt: Attempt) -> dict[str, Tensor]:
    """Images and sequences of a call, by the places of their arguments: `x`, and `x.0` for the first part of a tuple."""
    parts = [
        (f"{name}.0", value.items[0]) if isinstance(value, Items) and value.items else (name, value) for name, value in attempt.call or ()
    ]
    return {path: part for path, part in parts if isinstance(part, Tensor) and len(part.shape) > 2}


def _with_sides(attempt: Attempt, images: Mapping[str, Tensor], size: int) -> Attempt:
    """The attempt with images of one size."""
    for path in images:
        attempt = _changed_at(attempt, path, lambda tensor: replace(tensor, shape=(*tensor.shape[:2], *[size] * (len(tensor.shape) - 2))))
    return attempt


def _joined_channels(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Where two inputs are joined, and have twice the channels that a layer was given: one number of the constructor doubled, and the channels of one input."""
    match = JOINED.search(outcome.error)
    channels = match[1] if match and int(match[2]) == 2 * int(match[1]) else ""
    images = [
        name for name, value in attempt.call or () if isinstance(value, Tensor) and len(value.shape) > 2 and str(value.shape[1]) == channels
    ]
    for parameter in [name for name, value in attempt.init if value == channels] if len(images) > 1 else ():
        for name in images:
            image = dict(attempt.call or ())[name]
            assert isinstance(image, Tensor)
            doubled = replace(image, shape=(image.shape[0], 2 * image.shape[1], *image.shape[2:]))
            yield set_call(set_init(attempt, parameter, str(2 * int(channels))), name, doubled)


NUMBER = re.compile(
    r"invalid combination of arguments|must be (an? )?(int|float|number|tuple of ints|Number)\b.*not Tensor|cannot be interpreted as an integer|"
    r"single element can be converted to an index|only one element tensors can be converted|\(got Tensor\)|found element of type Tensor|"
    r"Boolean value of Tensor with more than one value"
)
"""Errors of operations that take a number where they were given a tensor."""


def _plain_numbers(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """Numbers in place of tensors: each argument that the operation got such a tensor from alone, then all at once."""
    call = dict(attempt.call or ())
    names = [name for name in outcome.operation.origins or outcome.place.call if isinstance(call.get(name), Tensor)]
    if not NUMBER.search(outcome.error) or not names:
        return
    # `start or 0` gives a number, and a test elsewhere asks for a flag.
    is_value = re.search(r"\b(or|and)\b", outcome.place.statement) and not re.match(r"(if|while|assert)\b", outcome.place.statement)
    flags = ("True",) if "Boolean value" in outcome.error and not is_value else ()
    for number in (*flags, "4", "2", "0.5"):
        yield from (set_call(attempt, name, number) for name in names)
        if len(names) > 1:
            yield replace(attempt, call=tuple((name, number if name in names else value) for name, value in attempt.call or ()))


def _tables_for_numbers(attempt: Attempt, outcome: Outcome) -> Iterator[Attempt]:
    """A matrix in place of a number that the code looks into: `K[0][2]`."""
    if re.search(r"'(int|float)' object is not subscriptable", outcome.error):
        for name, value in attempt.call or ():
            if name in outcome.place.call and isinstance(value, str) and re.fullmatch(r"[\d.]+", value):
                yield set_call(attempt, name, Tensor((4, 4)))
