"""Sampling of images at fractional places, and Gumbel softmax (https://pytorch.org/docs/stable/nn.functional.html)."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from functools import reduce

import jax
import jax.numpy as jnp
from jax import lax


def affine_grid(theta: jax.Array, size: Sequence[int], align_corners: bool | None = None) -> jax.Array:
    """Sampling grid (N, *sizes, k) of affine maps `theta` (N, k, k + 1) (https://pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html)."""
    spans = [
        jnp.linspace(-1, 1, s, dtype=theta.dtype) * (1 if align_corners else (s - 1) / s) if s > 1 else jnp.zeros(s, theta.dtype)
        for s in size[2:]
    ]
    axes = jnp.meshgrid(*spans, indexing="ij")
    points = jnp.stack([*reversed(axes), jnp.ones_like(axes[0])], axis=-1)
    return jnp.einsum("...j,nij->n...i", points, theta)


def grid_sample(
    input: jax.Array, grid: jax.Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> jax.Array:
    """Values of `input` (N, C, *sizes) at `grid` (N, *out, k), whose last axis runs x, y(, z) from -1 to 1 → (N, C, *out).

    https://pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html
    """
    sizes, align = input.shape[2:], bool(align_corners)
    places = [from_unit(grid[..., -1 - axis], size, align) for axis, size in enumerate(sizes)]
    if mode == "bicubic":
        return sum_taps(input, [cubic_grid_taps(place, size, padding_mode, align) for place, size in zip(places, sizes, strict=True)])
    places = [pad_place(place, size, padding_mode, align) for place, size in zip(places, sizes, strict=True)]
    if mode == "nearest":
        return sum_taps(input, [[(jnp.round(place), jnp.ones_like(place))] for place in places])
    return sum_taps(input, [linear_grid_taps(place) for place in places])


def from_unit(place: jax.Array, size: int, align: bool) -> jax.Array:
    """Pixel coordinate of a place given from -1 to 1."""
    return (place + 1) / 2 * (size - 1) if align else ((place + 1) * size - 1) / 2


def pad_place(place: jax.Array, size: int, padding_mode: str, align: bool) -> jax.Array:
    """The pixel coordinate that stands for one outside: itself (`zeros`), the nearest (`border`) or the mirrored one (`reflection`)."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
        place = mirror(place, low, span) if span else jnp.zeros_like(place)
    return jnp.where(place <= 0, 0, jnp.where(place >= size - 1, size - 1, place))


def mirror(place: jax.Array, low: float, span: float) -> jax.Array:
    """Reflect at `low` and `low + span` until inside."""
    distance = jnp.abs(place - low)
    flips, rest = jnp.floor(distance / span), jnp.fmod(distance, span)
    return jnp.where(flips % 2 == 0, rest + low, span - rest + low)


def linear_grid_taps(place: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    """The two neighbours of a place and their weights."""
    low = lax.stop_gradient(jnp.floor(place))
    return [(low, low + 1 - place), (low + 1, place - low)]


def cubic_grid_taps(place: jax.Array, size: int, padding_mode: str, align: bool) -> list[tuple[jax.Array, jax.Array]]:
    """The four neighbours of a place and their weights (cubic convolution, a = -0.75)."""
    low = lax.stop_gradient(jnp.floor(place))
    t, a = place - low, -0.75

    def near(x: jax.Array) -> jax.Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: jax.Array) -> jax.Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = [far(t + 1), near(t), near(1 - t), far(2 - t)]
    return [(pad_place(low + i - 1, size, padding_mode, align), weight) for i, weight in enumerate(weights)]


def sum_taps(input: jax.Array, taps: Sequence[Sequence[tuple[jax.Array, jax.Array]]]) -> jax.Array:
    """Weighted sum over all combinations of one tap per axis; pixels outside count as 0."""

    def pick(image: jax.Array, *index: jax.Array) -> jax.Array:
        return image[(slice(None), *index)]

    total: jax.Array | float = 0.0
    for combination in itertools.product(*taps):
        index = [lax.stop_gradient(place) for place, _ in combination]
        inside = jnp.stack([(place >= 0) & (place <= size - 1) for place, size in zip(index, input.shape[2:], strict=True)]).all(0)
        safe = [jnp.where(inside, place, 0).astype(int) for place in index]
        weight = reduce(operator.mul, (factor for _, factor in combination))
        total = total + jnp.where(inside[:, None], jax.vmap(pick)(input, *safe), 0) * weight[:, None]
    return jnp.asarray(total)


def gumbel_softmax(logits: jax.Array, tau: float = 1, hard: bool = False, dim: int = -1, *, key: jax.Array) -> jax.Array:
    """Samples of the relaxed (or, with `hard`, one-hot with the relaxed gradient) categorical distribution.

    https://pytorch.org/docs/stable/generated/torch.nn.functional.gumbel_softmax.html
    """
    soft = jax.nn.softmax((logits + jax.random.gumbel(key, logits.shape, logits.dtype)) / tau, axis=dim)
    if not hard:
        return soft
    one_hot = jax.nn.one_hot(jnp.argmax(soft, axis=dim), logits.shape[dim], axis=dim, dtype=logits.dtype)
    return one_hot - lax.stop_gradient(soft) + soft
