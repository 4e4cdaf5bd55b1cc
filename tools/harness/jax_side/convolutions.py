"""Rewrites convolutions into a form that XLA's CPU backend has a kernel for. Used inside the sandbox, on the candidate's side.

XLA compiles a convolution with much padding, of several groups, or of float64 in other than two dimensions or with few channels, as plain loops: it
then takes a hundred times as long.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

import jax
import jax._src.lax.convolution
import jax.numpy as jnp
from jax import lax
from jax.interpreters import mlir

from migrate_agent.tools.harness.jax_side.convolution_phases import by_phases, stays_spread

PRODUCTS = 500_000
"""Number of products below which plain loops are as fast, and compile sooner."""
PARTS = 512
"""Number of slices above which the inputs of a convolution are not copied."""
COPIED = 2**26
"""Numbers in the copy above which they are not, either."""
FEW_CHANNELS = 16
"""XLA's kernel for float64 takes no convolution with at most so many channels on both sides; plain loops are a hundred times slower."""
WIDENED_PRODUCTS = 200_000
"""Number of products of such a convolution below which plain loops are as fast as one more channel is compiled: zeros compile sooner than matrices."""


_finite = ContextVar("_finite", default=True)


@contextmanager
def spreading(spread: bool) -> Iterator[None]:
    """Compile convolutions so that what is not finite reaches the outputs that it does in torch, if `spread`. Programs with gradients compile sooner
    without, and where they are not finite is compared with nothing."""
    token = _finite.set(not spread)
    try:
        yield
    finally:
        _finite.reset(token)


@cache
def quick_convolutions() -> None:
    """Register the lowering for float32 and float64, for the rest of the process; nothing where this jax's own is not found."""
    lower = getattr(getattr(jax._src.lax, "convolution", None), "_conv_general_dilated_lower", None)
    if lower is None:
        return

    def lowered(ctx: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
        (one, other), (out,) = ctx.avals_in, ctx.avals_out
        least = WIDENED_PRODUCTS if _lacks_channels(one, other, params) else PRODUCTS
        if one.dtype not in (jnp.float64, jnp.float32) or _products(one, other, out, **params) < least or is_settled(one, other, params):
            return lower(ctx, lhs, rhs, expand_complex_convolutions=True, **params)
        return mlir.lower_fun(partial(plainer, finite=_finite.get(), **params), multiple_results=False)(ctx, lhs, rhs)

    mlir.register_lowering(lax.conv_general_dilated_p, lowered, platform="cpu")


def _loops(lhs: Any, rhs: Any, **params: Any) -> bool:
    """Whether XLA's CPU backend has plain loops for a convolution of this dtype and rank, and of these channels."""
    channels = lhs.shape[params["dimension_numbers"].lhs_spec[1]], rhs.shape[params["dimension_numbers"].rhs_spec[0]]
    return bool(lhs.dtype == jnp.float64 and (lhs.ndim != 4 or max(channels) <= FEW_CHANNELS))


def _lacks_channels(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> bool:
    """Whether XLA's kernel would take the convolution if it had more channels."""
    alone = params["feature_group_count"] == params["batch_group_count"] == 1
    return alone and lhs.ndim == 4 and _loops(lhs, rhs, **params)


def _products(lhs: Any, rhs: Any, out: Any, **params: Any) -> int:
    """The number of products; those of a channel with other groups too where XLA's loops compute them, with zeros."""
    groups = params["feature_group_count"] * params["batch_group_count"] if _loops(lhs, rhs, **params) else 1
    return int(groups * out.size * rhs.size // max(rhs.shape[params["dimension_numbers"].rhs_spec[0]], 1))


def slow(lhs: Any, rhs: Any, out: Any, **params: Any) -> bool:
    """Whether a convolution of these avals stays one that XLA has plain loops for, and is large."""
    return _products(lhs, rhs, out, **params) >= PRODUCTS and stays_spread(lhs.shape, rhs.shape, params)


def is_settled(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> bool:
    """Whether `plainer` gives a convolution of these avals back as it is, with channels first and padded beforehand: what it gives back is asked again."""
    first = tuple(range(lhs.ndim))
    plain = not _padded(**params) and params["dimension_numbers"] == (first, first, first)
    return plain and not _lacks_channels(lhs, rhs, params) and not _becomes_matrices(lhs, rhs, params)


def _padded(**params: Any) -> bool:
    return any(low or high for low, high in params["padding"]) or any(step != 1 for step in params["lhs_dilation"])


def _groups(lhs: Sequence[int], **params: Any) -> int:
    """The number of groups, which are computed as products of matrices; 0 where it stays one convolution."""
    features = params["feature_group_count"]
    if 1 < features == lhs[params["dimension_numbers"].lhs_spec[1]]:
        return 0  # a group for each channel: that is quick in two dimensions, but of few channels
    groups = int(features * params["batch_group_count"])
    return groups if groups > 1 else 0


def plainer(lhs: Any, rhs: Any, *, finite: bool = False, **params: Any) -> Any:
    """The convolution of `lax.conv_general_dilated_p` with these parameters, with channels first, without zeros between inputs, padded beforehand, and
    as products of matrices where XLA has loops for it. Of inputs that are not `finite` those reach the same outputs.
    """
    numbers, axes = params["dimension_numbers"], tuple(range(lhs.ndim))
    lhs, rhs = lhs.transpose(numbers.lhs_spec), rhs.transpose(numbers.rhs_spec)
    params = {**params, "dimension_numbers": lax.ConvDimensionNumbers(axes, axes, axes)}
    dilated = any(step > 1 for step in params["lhs_dilation"]) and not stays_spread(lhs.shape, rhs.shape, params)
    out = by_phases(lhs, rhs, params, _dense, finite) if dilated else _dense(lhs, rhs, params)
    return out.transpose([numbers.out_spec.index(axis) for axis in axes])


def _dense(lhs: Any, rhs: Any, params: dict[str, Any]) -> Any:
    """The convolution with channels first, padded beforehand, and with more channels or as products of matrices where XLA has loops for it."""
    if _is_smaller_than_window(lhs, rhs, params):
        return _swapped(lhs, rhs, params)
    if _padded(**params):
        around = [(low, high, step - 1) for (low, high), step in zip(params["padding"], params["lhs_dilation"], strict=True)]
        lhs = lax.pad(lhs, jnp.zeros((), lhs.dtype), [(0, 0, 0), (0, 0, 0), *around])
        params = {**params, "padding": ((0, 0),) * len(around), "lhs_dilation": (1,) * len(around)}
    if _lacks_channels(lhs, rhs, params):
        count = rhs.shape[0]
        wider = lax.pad(rhs, jnp.zeros((), rhs.dtype), [(0, FEW_CHANNELS + 1 - count, 0), *[(0, 0, 0)] * (rhs.ndim - 1)])
        return lax.slice_in_dim(lax.conv_general_dilated_p.bind(lhs, wider, **params), 0, count, axis=1)
    if not _becomes_matrices(lhs, rhs, params):
        return lax.conv_general_dilated_p.bind(lhs, rhs, **params)
    lengths = _lengths(lhs.shape, rhs.shape, params)
    return _of_matrices(_windows_of(lhs, rhs.shape[2:], lengths, params), rhs, lengths, params)


def _lengths(lhs: Sequence[int], rhs: Sequence[int], params: Mapping[str, Any]) -> list[int]:
    """The numbers of outputs along the spatial axes, of a convolution without padding."""
    sizes = zip(lhs[2:], rhs[2:], params["rhs_dilation"], params["window_strides"], strict=True)
    return [(size - (window - 1) * spacing - 1) // stride + 1 for size, window, spacing, stride in sizes]


def _becomes_matrices(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> bool:
    """Whether `_dense` computes a convolution without padding as products of matrices: XLA has loops for it, and its inputs have so few slices, and numbers
    in them, that they may be copied."""
    if not _groups(lhs.shape, **params) and not _loops(lhs, rhs, **params):
        return False
    taps, outputs = math.prod(rhs.shape[2:]), math.prod(_lengths(lhs.shape, rhs.shape, params))
    return bool(0 < min(taps, outputs) <= PARTS and math.prod(lhs.shape[:2]) * taps * outputs <= COPIED)


def _is_smaller_than_window(lhs: Any, rhs: Any, params: dict[str, Any]) -> bool:
    """Whether the window has several times as many places as the inputs, which are mostly padding then: the gradient of a layer that reads whole rows."""
    steps = (*params["window_strides"], *params["lhs_dilation"], *params["rhs_dilation"])
    alone = params["feature_group_count"] == params["batch_group_count"] == 1
    return alone and set(steps) == {1} and 0 < 2 * math.prod(lhs.shape[2:]) < math.prod(rhs.shape[2:])


def _swapped(lhs: Any, rhs: Any, params: dict[str, Any]) -> Any:
    """The same outputs, with the inputs as a window that goes over the window: out[q] is the sum over t of input[-t] window[t - low - q]."""
    sizes = zip(lhs.shape[2:], rhs.shape[2:], params["padding"], strict=True)
    padding = []
    for size, window, (low, high) in sizes:
        length = size + low + high - window + 1
        before = size - window + low
        padding.append((before, length - 1 - window - before + size))
    axes = tuple(range(2, lhs.ndim))
    out = _dense(jnp.flip(rhs, axes), jnp.flip(lhs, axes), {**params, "padding": tuple(padding)})
    return out.swapaxes(0, 1)


def _windows_of(lhs: Any, window: Sequence[int], lengths: Sequence[int], params: dict[str, Any]) -> Any:
    """What each output meets of the inputs: [batch, channels, places of the window, outputs]. Sliced by what there is less of."""
    strides, spacing = params["window_strides"], params["rhs_dilation"]
    by_taps = math.prod(window) <= math.prod(lengths)
    counts, steps = (window, spacing) if by_taps else (lengths, strides)
    others, jumps = (lengths, strides) if by_taps else (window, spacing)
    slices = []
    for at in itertools.product(*map(range, counts)):
        starts = [offset * step for offset, step in zip(at, steps, strict=True)]
        ends = [start + (count - 1) * jump + 1 for start, count, jump in zip(starts, others, jumps, strict=True)]
        part = lax.slice(lhs, (0, 0, *starts), (*lhs.shape[:2], *ends), (1, 1, *jumps))
        slices.append(part.reshape(*lhs.shape[:2], -1))
    return jnp.stack(slices, axis=2 if by_taps else 3)


def _of_matrices(windows: Any, rhs: Any, lengths: Sequence[int], params: dict[str, Any]) -> Any:
    """The outputs of a convolution, also of several groups of channels, or of the batch (the gradient of the former by the window)."""
    groups, batches = params["feature_group_count"], params["batch_group_count"]
    count, channels, taps, outputs = windows.shape
    if batches > 1:
        windows = windows.reshape(batches, count // batches, channels * taps, outputs)
        out = jnp.einsum("gncl,goc->ngol", windows, rhs.reshape(batches, -1, channels * taps))
    else:
        windows = windows.reshape(count, groups, channels // groups * taps, outputs)
        out = jnp.einsum("ngcl,goc->ngol", windows, rhs.reshape(groups, -1, channels // groups * taps))
    return out.reshape(out.shape[0], -1, *lengths)
