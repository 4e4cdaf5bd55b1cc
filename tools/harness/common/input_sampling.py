"""Samples parameters and inputs like those of the example. numpy only.

Default initialisation hides bugs (biases are zero, scales one, running statistics trivial), and recorded inputs exercise one point.
All float values are representable in float32, so that one set of files serves both precisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from migrate_agent.tools.harness.common import seeded_arrays
from migrate_agent.tools.harness.common.seeded_arrays import Recipe
from migrate_agent.tools.harness.packed_lengths import PackedLengths

Array = NDArray[Any]
CONSTANT_JITTER = 0.25
PARAMETER_JITTER = 0.5
BUFFER_JITTER = 0.1
CENTRED = 0.05
"""Parameters whose mean is at most this share of their RMS are random numbers around zero."""
MANY = 100_000
"""Number of elements above which inputs are not made twice as large."""


@dataclass(frozen=True)
class Leaf:
    """One tensor argument: its values as recorded (float64 for floats), and torch's name of its dtype."""

    value: Array
    dtype: str
    lengths: PackedLengths | None = None
    """What it has in every batch, where it decides lengths of packed sequences."""


def single(value: Array) -> Array:
    """The nearest float32 (complex64) values, in the array's own dtype."""
    if value.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return value.astype(np.float32).astype(value.dtype)
    if value.dtype.kind == "c":
        return value.astype(np.complex64).astype(value.dtype)
    return value


def sample_state(
    state: Mapping[str, Array], parameters: frozenset[str], tied: Mapping[str, str], seed: Sequence[int], strength: float
) -> dict[str, Array]:
    """Perturbed parameters and buffers by name, of the shapes and dtypes of `state`.

    `tied` maps a name to the earlier name whose values it shares. `strength` scales the perturbation: 0
    leaves all values as they are. Large parameters are drawn anew with the same spread, so that their seed tells them (`SeededArray`).
    """
    drawn: dict[str, Array] = {}
    for index, (name, value) in enumerate(state.items()):
        if name in tied:
            drawn[name] = drawn[tied[name]]
            continue
        if name in parameters and (recipe := _recipe(name, value, seed, strength)) is not None:
            drawn[name] = recipe.draw()
            continue
        generator = np.random.default_rng([*seed, 0, index])
        perturb = _parameter if name in parameters else _buffer
        drawn[name] = single(perturb(value, generator, strength)) if value.dtype.kind in "fc" and value.size else value
    return drawn


def _recipe(name: str, value: Array, seed: Sequence[int], strength: float) -> Recipe | None:
    """How a large parameter is drawn by its seed alone; None for others, and for those whose elements are not spread around zero: they may be a table."""
    if value.dtype.kind != "f" or value.size < seeded_arrays.LARGE or not strength or not np.isfinite(value).all():
        return None
    if (value == value.flat[0]).all():
        return Recipe.named(seed, name, float(value.flat[0]), strength * CONSTANT_JITTER, value)
    size = float(np.sqrt(np.mean(value**2)))
    if abs(float(value.mean())) > CENTRED * size:
        return None
    return Recipe.named(seed, name, 0.0, size * float(np.hypot(1.0, strength * PARAMETER_JITTER)), value)


def _parameter(value: Array, generator: np.random.Generator, strength: float) -> Array:
    if not np.isfinite(value).all():
        return value
    # A constant has no spread to scale by: norm weights and biases are ones and zeros.
    constant = bool((value == value.flat[0]).all())
    scale = CONSTANT_JITTER if constant else PARAMETER_JITTER * float(np.sqrt(np.mean(np.abs(value) ** 2)))
    return value + strength * scale * generator.standard_normal(value.shape)


def _buffer(value: Array, generator: np.random.Generator, strength: float) -> Array:
    """Perturb a buffer: zeros (running means) move, constants (running variances) keep their sign, integral tables stay, others move a little."""
    strength = min(strength, 1.0)
    if not np.isfinite(value).all():
        return value
    if (value == 0).all():
        return value + strength * CONSTANT_JITTER * generator.standard_normal(value.shape)
    if (value == value.flat[0]).all():
        return value * (1 + strength * generator.uniform(-0.5, 1.0, value.shape))
    if (value == np.round(value.real)).all():
        return value
    return value * (1 + strength * BUFFER_JITTER * generator.uniform(-1, 1, value.shape))


def normal(like: Array, seed: Sequence[int], centre: float, scale: float) -> Array:
    """Normal numbers of the shape and dtype (floats, complex) of `like`, as float32 holds them; many of them are told by their seed (`SeededArray`)."""
    if like.dtype.kind == "f" and like.size >= seeded_arrays.LARGE:
        return Recipe(tuple(seed), centre, scale, like.shape, like.dtype.name).draw()
    generator = np.random.default_rng([*seed])
    noise = generator.standard_normal(like.shape) + (1j * generator.standard_normal(like.shape) if like.dtype.kind == "c" else 0)
    return single(np.asarray(centre + scale * noise, dtype=like.dtype))


def recorded_inputs(leaves: Sequence[Leaf]) -> list[Array]:
    """The recorded inputs, with values representable in float32."""
    return [single(leaf.value) for leaf in leaves]


def sample_inputs(leaves: Sequence[Leaf], seed: Sequence[int], domain: tuple[float, float] | None) -> list[Array]:
    """New inputs of the recorded shapes and dtypes, from a distribution like the recorded one, or uniform over `domain`."""
    return legitimate(leaves, [_sampled_input(leaf, (*seed, 1, index), domain) for index, leaf in enumerate(leaves)])


def legitimate(leaves: Sequence[Leaf], values: Sequence[Array]) -> list[Array]:
    """The values, with lengths of packed sequences as other batches have them (`PackedLengths.fit`); all others as they are."""
    recorded, shapes = [leaf.value.shape for leaf in leaves], [value.shape for value in values]
    return [
        value if leaf.lengths is None else leaf.lengths.fit(value, leaf.lengths.added(recorded, shapes))
        for leaf, value in zip(leaves, values, strict=True)
    ]


def with_values(leaves: Sequence[Leaf], values: Sequence[Array]) -> list[Leaf]:
    """The leaves with these values as the recorded ones."""
    return [
        replace(leaf, value=value, lengths=leaf.lengths and replace(leaf.lengths, most=int(value.max(initial=0))))
        for leaf, value in zip(leaves, values, strict=True)
    ]


def _sampled_input(leaf: Leaf, seed: Sequence[int], domain: tuple[float, float] | None) -> Array:
    value = leaf.value
    if leaf.lengths is not None and value.size:
        return leaf.lengths.draw(value, np.random.default_rng([*seed]))
    many = value.dtype.kind == "f" and value.size >= seeded_arrays.LARGE and not is_mask(value)
    if many and domain is None and value.min() < 0:
        return normal(value, seed, float(np.mean(value)), _spread(value))
    return _input(value, np.random.default_rng([*seed]), domain)


def _spread(value: Array) -> float:
    return float(np.std(value)) or float(np.abs(value).mean()) or 1.0


def is_mask(value: Array) -> bool:
    """Whether a float array holds two values at most, or something not finite: a mask, not a signal."""
    if value.dtype.kind != "f" or value.size <= 2:
        return False
    low, high = value.min(), value.max()
    # Not sorted: an array of millions would take seconds. A NaN makes both NaN.
    return not (np.isfinite(low) and np.isfinite(high)) or bool(((value == low) | (value == high)).all())


def _input(value: Array, generator: np.random.Generator, domain: tuple[float, float] | None) -> Array:
    if not value.size:
        return value
    if value.dtype.kind not in "fc" or is_mask(value):
        # Integers may be indices: only recorded values are sure to be in range.
        return generator.choice(value.reshape(-1), value.shape)
    if domain is not None:
        return single(generator.uniform(*domain, value.shape).astype(value.dtype))
    noise = generator.standard_normal(value.shape)
    if value.dtype.kind == "c":
        noise = noise + 1j * generator.standard_normal(value.shape)
    drawn = np.mean(value) + _spread(value) * noise
    # A recorded input without negative values may be one that must not have any (lengths,
    # probabilities).
    if value.dtype.kind == "f" and value.min() >= 0:
        drawn = np.abs(drawn)
        drawn = np.minimum(drawn, value.max()) if value.max() <= 1 else drawn
    return single(drawn.astype(value.dtype))


def resized_shapes(leaves: Sequence[Leaf], sizes: Mapping[int, int], axis: int | None) -> list[tuple[int, ...]]:
    """The inputs' shapes with sizes replaced by the table `sizes` (on `axis` only, where given)."""
    return [tuple(sizes.get(n, n) if axis in (None, position) else n for position, n in enumerate(leaf.value.shape)) for leaf in leaves]


def resized(leaves: Sequence[Leaf], sizes: Mapping[int, int], axis: int | None, seed: Sequence[int]) -> list[Array] | None:
    """Inputs with sizes replaced by the table `sizes` (on `axis` only, where given); None where no shape changes."""
    generator = np.random.default_rng([*seed, 2])
    shapes = resized_shapes(leaves, sizes, axis)
    if all(shape == leaf.value.shape for shape, leaf in zip(shapes, leaves, strict=True)):
        return None
    # Lengths in falling order, and masks with ones up to each length, stay so where neighbours are repeated.
    in_place = any(leaf.lengths is not None for leaf in leaves)
    return legitimate(leaves, [_resize(leaf.value, shape, generator, in_place) for leaf, shape in zip(leaves, shapes, strict=True)])


def _resize(value: Array, shape: tuple[int, ...], generator: np.random.Generator, in_place: bool = False) -> Array:
    """The array cut, or extended by repetition (`in_place`: of each row beside itself), to `shape`; floats get new values, so that no two rows are
    equal."""
    grown = value
    for axis, size in enumerate(shape):
        rows = np.arange(size) % max(grown.shape[axis], 1)
        grown = np.take(grown, np.sort(rows) if in_place else rows, axis=axis)
    return _input(grown, generator, None) if value.dtype.kind == "f" and not is_mask(value) else grown


def edges(leaves: Sequence[Leaf], large: float) -> dict[str, list[Array]]:
    """Inputs at edges by name: zeros, large, NaN, … for float signals, and extremes for integers, booleans and masks, each kind alone."""
    inputs: dict[str, list[Array]] = {}
    kinds = (
        (is_signal, _of_signals(large)),
        (_is_integer, _OF_INTEGERS),
        (_is_bit, _OF_BITS),
        (_is_boolean, _OF_BOOLEANS),
        (_is_finite_mask, _OF_MASKS),
    )
    for moves, changes in kinds:
        movable = [bool(leaf.value.size) and moves(leaf.value) for leaf in leaves]
        if any(movable):
            for name, change in changes.items():
                pairs = zip(leaves, _unbounded(leaves, movable) if EXTREMES.get(name) == Extreme.INFINITE else movable, strict=True)
                inputs[name] = [single(change(leaf.value.copy())) if moved else leaf.value for leaf, moved in pairs]
    if any(_is_switch(leaf.value) for leaf in leaves):
        inputs[MIXED] = [_mixed(leaf.value, index) if _is_switch(leaf.value) else leaf.value for index, leaf in enumerate(leaves)]
    return {name: legitimate(leaves, values) for name, values in inputs.items()}


def _is_switch(value: Array) -> bool:
    """Whether an array is all ones or all zeros, and no signal: a mask that masks nothing, for example."""
    return (
        value.dtype.kind in "biuf"
        and not is_signal(value)
        and value.size > 1
        and bool((value == value.flat[0]).all())
        and value.flat[0] in (0, 1)
    )


def _mixed(value: Array, index: int) -> Array:
    """Ones mixed with zeros: a constant mask does not show along which axis it is applied."""
    other = (1 - value.astype(np.int64)).astype(value.dtype)
    return np.where(np.random.default_rng([index, value.size]).random(value.shape) < SHARE_KEPT, value, other)


def _unbounded(leaves: Sequence[Leaf], movable: Sequence[bool]) -> Sequence[bool]:
    """The movable inputs with values outside of [0, 1] (probabilities are never infinite); all where there are none."""
    unbounded = [moves and not (leaf.value.min() >= 0 and leaf.value.max() <= 1) for leaf, moves in zip(leaves, movable, strict=True)]
    return unbounded if any(unbounded) else movable


def gradient_edges(leaves: Sequence[Leaf], large: float) -> dict[str, list[Array]]:
    """Inputs by name at which gradients have branches: zeros, large values, few levels (zero among them), equal rows, constant booleans."""
    inputs = {name: values for name, values in edges(leaves, large).items() if name in _WITH_GRADIENTS}
    signals = [bool(leaf.value.size) and is_signal(leaf.value) for leaf in leaves]
    recorded = recorded_inputs(leaves)
    if any(signals):
        inputs["levels"] = [_levels(value) if moves else value for value, moves in zip(recorded, signals, strict=True)]
    alike = equal_rows(leaves, recorded)
    return inputs if alike is None else {**inputs, "equal-rows": alike}


def _levels(value: Array) -> Array:
    """The array rounded to multiples of a power of two near its RMS, which makes ties, zeros and integers."""
    size = float(np.sqrt(np.mean(value**2)))
    step = 2.0 ** np.round(np.log2(size)) if size > 0 and np.isfinite(size) else 1.0
    return single(np.round(value / step) * step)


def shifted(leaves: Sequence[Leaf], values: Sequence[Array], share: float, seed: Sequence[int]) -> list[Array]:
    """The inputs with normal noise added to all signals, of `share` times the RMS of the recorded or given values."""
    moved = []
    for index, (leaf, value) in enumerate(zip(leaves, values, strict=True)):
        if value.size and is_signal(leaf.value):
            size = max(float(np.sqrt(np.mean(leaf.value**2))), float(np.sqrt(np.mean(value**2)))) or 1.0
            value = value + share * size * np.random.default_rng([*seed, 4, index]).standard_normal(value.shape)
        moved.append(value)
    return moved


def equal_rows(leaves: Sequence[Leaf], values: Sequence[Array]) -> list[Array] | None:
    """The inputs with all rows of the batch equal to the first, which makes ties; None where there is no batch."""
    count = next((leaf.value.shape[0] for leaf in leaves if leaf.value.ndim), 0)
    if count < 2:
        return None
    rows = [np.repeat(value[:1], count, axis=0) if value.ndim and value.shape[0] == count else value for value in values]
    return legitimate(leaves, rows)


def is_signal(value: Array) -> bool:
    """Whether an array holds floats that are no mask."""
    return value.dtype.kind == "f" and not is_mask(value)


def _is_integer(value: Array) -> bool:
    return value.dtype.kind in "iu"


def _is_finite_mask(value: Array) -> bool:
    return is_mask(value) and bool(np.isfinite(value).all())


def _is_boolean(value: Array) -> bool:
    return value.dtype.kind == "b"


def _is_bit(value: Array) -> bool:
    """Whether an array holds integers that are zero or one, as a mask of integers does."""
    return _is_integer(value) and value.size > 1 and bool(((value == 0) | (value == 1)).all())


MIXED, SHARE_KEPT = "mixed", 0.75
VANISHING = {"tinier": 1e-9, "tiniest": 1e-13}
"""Scales below the eps of a cosine (1e-8) and of dividing norms (1e-12): their eps shows at no larger input."""


class Extreme(StrEnum):
    """What is special about the size of a scenario's inputs, where that bears on how its results are compared."""

    NONE = ""
    LARGE = "large"
    """Gates saturate: values far below the usual ones are what saturation left of them."""
    VANISHING = "vanishing"
    """Rounding may be all that is left of an output."""
    INFINITE = "infinite"
    """NaN may come of infinities on the way."""
    EMPTY = "empty"
    """There is no row, which a rewrite may refuse."""
    HIDDEN = "hidden"
    """Infinities stand where a mask hides them: zero times infinity may be zero, where XLA chooses by the mask instead."""


EXTREMES = {
    "large": Extreme.LARGE,
    "inf": Extreme.INFINITE,
    "minus-inf": Extreme.INFINITE,
    **dict.fromkeys(VANISHING, Extreme.VANISHING),
}
"""Of the inputs that `edges` gives by name; others are none."""


FAR = (100.0, 1000.0)
HUGE = 1e6
"""Inputs are also this many deviations from zero, and so many times as large: what a formula squares and takes away again drowns in float32."""


def far_inputs(leaves: Sequence[Leaf], values: Sequence[Array]) -> dict[str, list[Array]]:
    """Inputs by name with all signals far from zero beside their spread, huge, or with rows of zeros among them."""
    signals = [bool(leaf.value.size) and is_signal(leaf.value) for leaf in leaves]
    changes: dict[str, Callable[[Array], Array]] = {f"offset-{far:.0f}": partial(_offset, deviations=far) for far in FAR}
    changes |= {"huge": lambda value: value * HUGE, "zero-rows": _zero_rows}
    return {
        name: [single(change(value)) if moves else value for value, moves in zip(values, signals, strict=True)]
        for name, change in changes.items()
        if any(signals)
    }


def _offset(value: Array, deviations: float) -> Array:
    return value + deviations * (float(np.std(value)) or 1.0)


def _zero_rows(value: Array) -> Array:
    """The first element of the batch, and the first row of each other, are zeros; a single number is."""
    if not value.ndim:
        return np.zeros_like(value)
    value = value.copy()
    value[:1] = 0
    if value.ndim > 2:
        value[:, :1] = 0
    return value


def hidden(leaves: Sequence[Leaf], values: Sequence[Array], flags: Sequence[bool]) -> list[Array] | None:
    """The inputs with infinities in the first signal where a boolean input of its leading shape is false; None where no two fit so."""
    for number, (leaf, value) in enumerate(zip(leaves, values, strict=True)):
        masks = (mask for mask, flag in zip(values, flags, strict=True) if flag and mask.shape == value.shape[: mask.ndim])
        mask = next(masks, None)
        if mask is not None and value.size and is_signal(leaf.value) and not mask.all():
            kept = mask.reshape(mask.shape + (1,) * (value.ndim - mask.ndim))
            return [*values[:number], np.where(kept, value, np.inf), *values[number + 1 :]]
    return None


def _of_signals(large: float) -> dict[str, Callable[[Array], Array]]:
    return {
        "zeros": np.zeros_like,
        "minus-zeros": lambda value: np.full_like(value, -0.0),
        "large": lambda value: value * large,
        "tiny": lambda value: value * 1e-6,
        **{name: partial(np.multiply, factor) for name, factor in VANISHING.items()},
        "negative": lambda value: -np.abs(value),
        "nan": lambda value: _put(value, np.nan),
        "inf": lambda value: _put(value, np.inf),
        "minus-inf": lambda value: _put(value, -np.inf),
    }


_OF_INTEGERS: dict[str, Callable[[Array], Array]] = {
    "lowest": lambda value: np.full_like(value, value.min()),
    "highest": lambda value: np.full_like(value, value.max()),
}
_OF_MASKS: dict[str, Callable[[Array], Array]] = {
    "masks-lowest": lambda value: np.full_like(value, value.min()),
    "masks-highest": lambda value: np.full_like(value, value.max()),
    "masks-one": lambda value: _one_of(value, value.min(), value.max()),
}
GRADES = ((-0.5, 0.0, 0.25, 0.75, 1.0, 2.0), (0.0, 0.25, 0.75, 1.0))
"""What values of a mask become, between its lowest (0) and its highest (1) and beyond them; or between them alone."""


def graded_masks(leaves: Sequence[Leaf]) -> list[list[Array]]:
    """The recorded inputs with masks of other values than their two, one proposal for each row of `GRADES`; none where no input is a finite mask."""
    masks = [bool(leaf.value.size) and _is_finite_mask(leaf.value) for leaf in leaves]
    if not any(masks):
        return []
    return [
        [
            _graded(leaf.value, grades, index) if mask else single(leaf.value)
            for index, (leaf, mask) in enumerate(zip(leaves, masks, strict=True))
        ]
        for grades in GRADES
    ]


def _graded(value: Array, grades: Sequence[float], index: int) -> Array:
    low, high = float(value.min()), float(value.max())
    if low == high:  # a mask that masks nothing, or a state that starts at zero
        low, high = min(low, 0.0), max(high, 0.0) or 1.0
    shares = np.random.default_rng([index, value.size]).permutation(np.resize(np.array(grades), value.size))
    return single(np.asarray(low + (high - low) * shares.reshape(value.shape), value.dtype))


_OF_BOOLEANS: dict[str, Callable[[Array], Array]] = {
    "false": np.zeros_like,
    "true": np.ones_like,
    "one-true": lambda value: _one_of(value, False, True),
}
_OF_BITS: dict[str, Callable[[Array], Array]] = {"one-bit": lambda value: _one_of(value, 0, 1)}
_WITH_GRADIENTS = ("zeros", "large", MIXED, *_OF_BOOLEANS, *_OF_MASKS, *_OF_BITS)


def _one_of(value: Array, others: Any, one: Any) -> Array:
    """The others, and one element alone: what is divided by the number of elements that a mask chooses is guarded against none by a bound, which also a
    few may be below."""
    return _put(np.full_like(value, others), one)


def _put(value: Array, number: Any) -> Array:
    value.reshape(-1)[value.size // 2] = number
    return value


class ShapeKind(StrEnum):
    """What a proposal for other shapes changes."""

    BATCH = "batch"
    EMPTY = "empty"
    SIZE = "size"
    """A size wherever it appears."""
    AXIS = "axis"
    """One axis, in whichever input has that size there."""
    ONE = "one"
    """The same, to size 1: sums over it are sums of one number, and what compares its elements has none to compare."""


class ShapeVariant(NamedTuple):
    """A proposal for inputs of other shapes, and the end of its scenario's name."""

    label: str
    kind: ShapeKind
    values: list[Array]
    beside: list[Array] | None = None
    """Of an axis of size 1 the inputs with one element more than the example's there: what takes 1 and not this has broadcast it by chance."""


def shape_variants(leaves: Sequence[Leaf], seed: int) -> list[ShapeVariant]:
    """Proposals: batch sizes first (more than twice as large, 1, 0), then other sizes, each changed wherever it appears."""
    leading = next((leaf.value.shape for leaf in leaves if leaf.value.ndim), ())
    proposals: list[tuple[str, ShapeKind, dict[int, int], int | None]] = []
    if leading:
        more = 2 * leading[0] + (2 if leading[0] % 2 else 1)  # another parity; past what code might do for batches like the recorded ones
        more = more if sum(leaf.value.size for leaf in leaves) < MANY else leading[0] + 1
        proposals += [(f"batch{more}", ShapeKind.BATCH, {leading[0]: more}, 0)]
        proposals += [("batch1", ShapeKind.BATCH, {leading[0]: 1}, 0)] if leading[0] > 1 else []
        proposals += [("empty", ShapeKind.EMPTY, {leading[0]: 0}, 0)]
    sizes_by_axis = list(enumerate(leading[1:], 1))
    if any(leading[:1] == (size,) for leaf in leaves for size in leaf.value.shape[1:]):
        # No batch: as many nodes as the graph has, or a square.
        count = leading[0]
        proposals += [(f"size{count}-{count + 1}", ShapeKind.SIZE, {count: count + 1}, None)]
        proposals += [(f"size{count}-1", ShapeKind.ONE, {count: 1}, None)] if count > 1 else []
    proposals += [(f"size{size}-{size + 1}", ShapeKind.SIZE, {size: size + 1}, None) for _, size in sizes_by_axis]  # another parity
    proposals += [(f"axis{axis}-1", ShapeKind.ONE, {size: 1}, axis) for axis, size in sizes_by_axis if size > 1]
    proposals += [(f"axis{axis}-{max(size // 2, 1)}", ShapeKind.AXIS, {size: max(size // 2, 1)}, axis) for axis, size in sizes_by_axis]
    proposals += [(f"size{size}-{max(size // 2, 1)}", ShapeKind.SIZE, {size: max(size // 2, 1)}, None) for _, size in sizes_by_axis]
    distinct = {proposal[0]: proposal for proposal in proposals}
    variants = [(label, kind, resized(leaves, sizes, axis, (seed,))) for label, kind, sizes, axis in distinct.values()]
    beside = {
        label: resized(leaves, {size: size + 1 for size in sizes}, axis, (seed,))
        for label, kind, sizes, axis in distinct.values()
        if kind == ShapeKind.ONE
    }
    return [ShapeVariant(label, kind, values, beside.get(label)) for label, kind, values in variants if values is not None]


def multiples(leaves: Sequence[Leaf], divisors: Sequence[int], seed: int) -> list[tuple[str, list[Array]]]:
    """Proposals `(label, inputs)`: the next multiple of each divisor, and one more, where the example's size is no multiple."""
    leading = next((leaf.value.shape for leaf in leaves if leaf.value.ndim), ())
    variants = []
    for divisor in divisors:
        for size in leading[1:]:
            whole = -(-size // divisor) * divisor
            if size % divisor > 1 and whole <= 2 * size:
                rows = [(f"size{size}-{other}", resized(leaves, {size: other}, None, (seed,))) for other in (whole, whole + 1)]
                variants += [(label, values) for label, values in rows if values is not None]
    return list(dict(variants).items())


ONE_INPUT = "size-of-input"
"""How the labels of sizes begin that one input has alone."""


def alone_variants(leaves: Sequence[Leaf], seed: int) -> list[tuple[str, list[Array]]]:
    """Proposals `(label, inputs)`: one input longer along one axis, whose size another axis of the example has too, perhaps by chance; and where
    several others have it, these longer together, as keys and values are beside queries. Axes in turn, the batch's last."""
    axes = [(axis == 0, axis, number, size) for number, leaf in enumerate(leaves) for axis, size in enumerate(leaf.value.shape) if size]
    variants, rests = [], []
    for first, axis, number, size in sorted(axes):
        shared = [(other, along) for _, along, other, length in axes if length == size and (other, along) != (number, axis)]
        if shared:
            name = f"{ONE_INPUT}{number}-axis{axis}-{size + 1}"
            variants.append((first, axis, 0, name, _longer(leaves, [(number, axis)], seed)))
        beside = [(other, along) for other, along in shared if other != number]
        if len({other for other, _ in beside}) > 1:
            rests.append((first, axis, 1, f"size-beside-input{number}-axis{axis}-{size + 1}", _longer(leaves, beside, seed)))
    return [(name, values) for _, _, _, name, values in sorted([*variants, *rests], key=lambda row: row[:3])]


def _longer(leaves: Sequence[Leaf], axes: Sequence[tuple[int, int]], seed: int) -> list[Array]:
    """The recorded inputs, one longer at each of these pairs of input and axis."""
    values = recorded_inputs(leaves)
    for number in dict.fromkeys(number for number, _ in axes):
        shape = tuple(size + ((number, axis) in axes) for axis, size in enumerate(values[number].shape))
        values[number] = _resize(leaves[number].value, shape, np.random.default_rng([seed, 2, number]))
    return legitimate(leaves, values)


def stacked(first: Sequence[Array], second: Sequence[Array]) -> list[list[Array]]:
    """Proposals for inputs with one more leading axis of length 2, made of `first` and `second`: all inputs, or only those of the highest rank."""
    most = max((value.ndim for value in first), default=0)
    if not most:
        return []
    every = [np.stack(pair) if pair[0].ndim else pair[0] for pair in zip(first, second, strict=True)]
    if all(value.ndim in (0, most) for value in first):
        return [every]
    return [every, [joined if value.ndim == most else value for joined, value in zip(every, first, strict=True)]]
