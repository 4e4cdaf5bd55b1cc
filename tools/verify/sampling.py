"""What the units are run on: parameters and inputs drawn anew from what the example showed. numpy only.

Default initialisation hides bugs (biases are zero, scales one, running statistics trivial), and recorded inputs exercise one point.
All float values are representable in float32, so that one set of files serves both precisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
CONSTANT_JITTER = 0.25
PARAMETER_JITTER = 0.5
BUFFER_JITTER = 0.1


@dataclass(frozen=True)
class Leaf:
    """One tensor argument: its values as recorded (float64 for floats), and torch's name of its dtype."""

    value: Array
    dtype: str


def single(value: Array) -> Array:
    """The nearest float32 (complex64) values, in the array's own dtype."""
    if value.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return value.astype(np.float32).astype(value.dtype)
    if value.dtype.kind == "c":
        return value.astype(np.complex64).astype(value.dtype)
    return value


def sample_state(
    state: Mapping[str, Array], parameters: frozenset[str], tied: Mapping[str, str], seed: int, strength: float
) -> dict[str, Array]:
    """Perturbed parameters and buffers, by name; `tied` names get their first name's values. `strength` 1 is usual, 0 leaves all as it is."""
    drawn: dict[str, Array] = {}
    for index, (name, value) in enumerate(state.items()):
        if name in tied:
            drawn[name] = drawn[tied[name]]
            continue
        generator = np.random.default_rng([seed, index])
        perturb = _parameter if name in parameters else _buffer
        drawn[name] = single(perturb(value, generator, strength)) if value.dtype.kind in "fc" and value.size else value
    return drawn


def _parameter(value: Array, generator: np.random.Generator, strength: float) -> Array:
    if not np.isfinite(value).all():
        return value
    constant = bool((value == value.flat[0]).all())
    scale = CONSTANT_JITTER if constant else PARAMETER_JITTER * float(np.sqrt(np.mean(np.abs(value) ** 2)))
    return value + strength * scale * generator.standard_normal(value.shape)


def _buffer(value: Array, generator: np.random.Generator, strength: float) -> Array:
    """Zeros (running means) move, ones (running variances) stay positive, masks and tables of whole numbers stay, other tables move a little."""
    if not np.isfinite(value).all():
        return value
    if (value == 0).all():
        return value + strength * CONSTANT_JITTER * generator.standard_normal(value.shape)
    if (value == value.flat[0]).all():
        return value * (1 + strength * generator.uniform(-0.5, 1.0, value.shape))
    if (value == np.round(value.real)).all():
        return value
    return value * (1 + strength * BUFFER_JITTER * generator.uniform(-1, 1, value.shape))


def sample_inputs(leaves: list[Leaf], seed: int, domain: tuple[float, float] | None) -> list[Array]:
    """Inputs like those recorded. Seed 0 is the recording itself."""
    if seed == 0:
        return [single(leaf.value) for leaf in leaves]
    return [_input(leaf.value, np.random.default_rng([seed, 1, index]), domain) for index, leaf in enumerate(leaves)]


def is_mask(value: Array) -> bool:
    """Whether a float array holds two values at most, or something not finite: a mask, not a signal."""
    return value.dtype.kind == "f" and value.size > 2 and (not np.isfinite(value).all() or np.unique(value).size <= 2)


def _input(value: Array, generator: np.random.Generator, domain: tuple[float, float] | None) -> Array:
    if not value.size:
        return value
    if value.dtype.kind not in "fc" or is_mask(value):
        return generator.choice(value.reshape(-1), value.shape)
    if domain is not None:
        return single(generator.uniform(*domain, value.shape).astype(value.dtype))
    spread = float(np.std(value)) or float(np.abs(value).mean()) or 1.0
    noise = generator.standard_normal(value.shape)
    if value.dtype.kind == "c":
        noise = noise + 1j * generator.standard_normal(value.shape)
    drawn = np.mean(value) + spread * noise
    if value.dtype.kind == "f" and value.min() >= 0:
        drawn = np.abs(drawn)
        drawn = np.minimum(drawn, value.max()) if value.max() <= 1 else drawn
    return single(drawn.astype(value.dtype))


def resized(leaves: list[Leaf], sizes: Mapping[int, int], axis: int | None, seed: int) -> list[Array] | None:
    """Inputs with each size replaced as `sizes` says (on `axis` only, where given); None where that changes nothing."""
    generator = np.random.default_rng([seed, 2])
    shapes = [tuple(sizes.get(n, n) if axis in (None, position) else n for position, n in enumerate(leaf.value.shape)) for leaf in leaves]
    if all(shape == leaf.value.shape for shape, leaf in zip(shapes, leaves, strict=True)):
        return None
    return [_resize(leaf.value, shape, generator) for leaf, shape in zip(leaves, shapes, strict=True)]


def _resize(value: Array, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Cut, or extended by repetition with fresh signs of life: floats get new values, so no two rows are equal."""
    grown = value
    for axis, size in enumerate(shape):
        grown = np.take(grown, np.arange(size) % max(grown.shape[axis], 1), axis=axis)
    return _input(grown, generator, None) if value.dtype.kind == "f" and not is_mask(value) else grown


def edges(leaves: list[Leaf], large: float) -> dict[str, list[Array]]:
    """Inputs at the edges, by name: only float signals move; masks, integers and booleans stay."""
    movable = [leaf.value.dtype.kind == "f" and leaf.value.size > 0 and not is_mask(leaf.value) for leaf in leaves]
    if not any(movable):
        return {}

    def apply(change: Any) -> list[Array]:
        return [single(change(leaf.value.copy())) if moves else leaf.value for leaf, moves in zip(leaves, movable, strict=True)]

    return {
        "zeros": apply(np.zeros_like),
        "large": apply(lambda value: value * large),
        "tiny": apply(lambda value: value * 1e-6),
        "negative": apply(lambda value: -np.abs(value)),
        "nan": apply(lambda value: _put(value, np.nan)),
        "inf": apply(lambda value: _put(value, np.inf)),
        "minus-inf": apply(lambda value: _put(value, -np.inf)),
    }


def _put(value: Array, what: float) -> Array:
    value.reshape(-1)[value.size // 2] = what
    return value
