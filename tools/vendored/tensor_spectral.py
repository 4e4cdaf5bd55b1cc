"""Fourier transforms and windows with torch's conventions (https://pytorch.org/docs/stable/fft.html)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike


def fft_over(
    name: str, x: jax.Array, s: Sequence[int] | None = None, dim: int | Sequence[int] | None = None, norm: str | None = None
) -> jax.Array:
    """The transform `name` (`fft2`, `rfftn`, `ihfftn`, …) over some axes, cut or padded to `s` (-1: as it is).

    https://pytorch.org/docs/stable/generated/torch.fft.fftn.html
    """
    if dim is None:
        dim = (-2, -1) if name.endswith("2") else tuple(range(-len(s), 0)) if s is not None else tuple(range(-x.ndim, 0))
    axes = (dim,) if isinstance(dim, int) else tuple(dim)
    if s is None:
        lengths: list[int | None] = [None] * len(axes)
    else:
        lengths = [x.shape[axis] if size == -1 else size for size, axis in zip(s, axes, strict=True)]
        if s[-1] == -1 and name.startswith(("irfft", "hfft")):
            lengths[-1] = 2 * (x.shape[axes[-1]] - 1)
    kind = name.rstrip("2n")
    around = {"hfft": jnp.fft.fft, "ihfft": jnp.fft.ifft, "irfft": jnp.fft.ifft, "rfft": jnp.fft.fft}.get(kind, getattr(jnp.fft, kind))
    last = getattr(jnp.fft, kind)
    inner = list(zip(lengths[:-1], axes[:-1], strict=True))
    if kind in ("rfft", "ihfft"):
        x = last(x, lengths[-1], axis=axes[-1], norm=norm)
    for size, axis in inner:
        x = around(x, size, axis=axis, norm=norm)
    return x if kind in ("rfft", "ihfft") else last(x, lengths[-1], axis=axes[-1], norm=norm)


def paired_fft(x: jax.Array, signal_ndim: int, normalized: bool = False, *, inverse: bool = False) -> jax.Array:
    """`torch.fft` and `torch.ifft` of PyTorch before 1.8, whose last axis has a real and an imaginary part
    (https://docs.pytorch.org/docs/1.7.1/generated/torch.fft.html)."""
    transform = jnp.fft.ifftn if inverse else jnp.fft.fftn
    return _pairs(transform(_complex(x), axes=tuple(range(-signal_ndim, 0)), norm="ortho" if normalized else "backward"))


def paired_rfft(x: jax.Array, signal_ndim: int, normalized: bool = False, onesided: bool = True) -> jax.Array:
    """`torch.rfft` of PyTorch before 1.8: pairs of a real and an imaginary part in a new last axis
    (https://docs.pytorch.org/docs/1.7.1/generated/torch.rfft.html)."""
    transform = jnp.fft.rfftn if onesided else jnp.fft.fftn
    return _pairs(transform(x, axes=tuple(range(-signal_ndim, 0)), norm="ortho" if normalized else "backward"))


def paired_irfft(
    x: jax.Array, signal_ndim: int, normalized: bool = False, onesided: bool = True, signal_sizes: Sequence[int] | None = None
) -> jax.Array:
    """`torch.irfft` of PyTorch before 1.8 (https://docs.pytorch.org/docs/1.7.1/generated/torch.irfft.html)."""
    axes, norm = tuple(range(-signal_ndim, 0)), "ortho" if normalized else "backward"
    if onesided:
        return jnp.fft.irfftn(_complex(x), s=tuple(signal_sizes) if signal_sizes else None, axes=axes, norm=norm)
    return jnp.fft.ifftn(_complex(x), axes=axes, norm=norm).real


def _complex(pairs: jax.Array) -> jax.Array:
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


def _pairs(values: jax.Array) -> jax.Array:
    return jnp.stack([values.real, values.imag], axis=-1)


def framing_window(window: jax.Array | None, n_fft: int, win_length: int | None, dtype: DTypeLike) -> jax.Array:
    """The window, ones where none is given, put in the middle of `n_fft` samples."""
    length = n_fft if win_length is None else win_length
    window = jnp.ones(length, dtype) if window is None else window
    left = (n_fft - length) // 2
    return jnp.pad(window, (left, n_fft - length - left))


def stft(
    x: jax.Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: jax.Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> jax.Array:
    """Short-time Fourier transform (…, time) → (…, frequency, frames) (https://pytorch.org/docs/stable/generated/torch.stft.html)."""
    hop = n_fft // 4 if hop_length is None else hop_length
    real = window is None or not jnp.iscomplexobj(window)
    onesided = (real and not jnp.iscomplexobj(x)) if onesided is None else onesided
    if center:
        modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=modes[pad_mode])
    starts = jnp.arange(0, x.shape[-1] - n_fft + 1, hop)
    frames = x[..., starts[:, None] + jnp.arange(n_fft)] * framing_window(window, n_fft, win_length, x.real.dtype)
    spectrum = (jnp.fft.rfft if onesided else jnp.fft.fft)(frames, norm="ortho" if normalized else None).mT
    return jnp.stack([spectrum.real, spectrum.imag], axis=-1) if return_complex is False else spectrum


def istft(
    x: jax.Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: jax.Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> jax.Array:
    """Inverse of `stft` by least squares (…, frequency, frames) → (…, time) (https://pytorch.org/docs/stable/generated/torch.istft.html)."""
    hop = n_fft // 4 if hop_length is None else hop_length
    onesided = x.shape[-2] != n_fft if onesided is None else onesided
    weights = framing_window(window, n_fft, win_length, x.real.dtype)
    norm = "ortho" if normalized else None
    half = x if onesided else x[..., : n_fft // 2 + 1, :]
    frames = jnp.fft.ifft(x.mT, norm=norm) if return_complex else jnp.fft.irfft(half.mT, n_fft, norm=norm)
    count = x.shape[-1]
    places = (jnp.arange(count)[:, None] * hop + jnp.arange(n_fft)).reshape(-1)
    size = n_fft + hop * (count - 1)

    def overlap(parts: jax.Array) -> jax.Array:
        return jnp.zeros((*parts.shape[:-2], size), parts.dtype).at[..., places].add(parts.reshape(*parts.shape[:-2], places.size))

    signal, energy = overlap(frames * weights), overlap(jnp.broadcast_to(weights**2, (count, n_fft)))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else size - (n_fft // 2 if center else 0)
    signal, energy = signal[..., start:end], energy[start:end]
    signal = signal / energy
    missing = end - start - signal.shape[-1]
    return jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)]) if missing > 0 else signal


def phase(length: int, periodic: bool, dtype: DTypeLike | None) -> jax.Array:
    """0 … 1 over a window; a periodic one leaves out its last point."""
    steps = max(length if periodic else length - 1, 1)
    return jnp.arange(length, dtype=float if dtype is None else dtype) / steps


def cosine_window(length: int, coefficients: Sequence[float], *, periodic: bool = True, dtype: DTypeLike | None = None) -> jax.Array:
    """`a0 - a1 cos(2πx) + a2 cos(4πx) - …`: Hann, Hamming, Blackman (https://pytorch.org/docs/stable/generated/torch.signal.windows.general_cosine.html)."""
    x = phase(length, periodic, dtype)
    if length == 1:
        return jnp.ones_like(x)
    return jnp.asarray(sum((-1) ** i * a * jnp.cos(2 * jnp.pi * i * x) for i, a in enumerate(coefficients)))


def bartlett_window(length: int, *, periodic: bool = True, dtype: DTypeLike | None = None) -> jax.Array:
    """Triangular window (https://pytorch.org/docs/stable/generated/torch.bartlett_window.html)."""
    x = phase(length, periodic, dtype)
    return 1 - jnp.abs(2 * x - 1) if length > 1 else jnp.ones_like(x)


def kaiser_window(length: int, beta: float = 12.0, *, periodic: bool = True, dtype: DTypeLike | None = None) -> jax.Array:
    """Kaiser window (https://pytorch.org/docs/stable/generated/torch.kaiser_window.html)."""
    x = phase(length, periodic, dtype)
    inside = jnp.sqrt(jnp.maximum(1 - jnp.square(2 * x - 1), 0))
    return jnp.i0(beta * inside) / jnp.i0(jnp.asarray(beta, x.dtype)) if length > 1 else jnp.ones_like(x)


def sine_window(length: int, *, periodic: bool = False, dtype: DTypeLike | None = None) -> jax.Array:
    """Half a sine (https://pytorch.org/docs/stable/generated/torch.signal.windows.cosine.html)."""
    points = jnp.arange(length, dtype=float if dtype is None else dtype) + 0.5
    periodic = periodic and length > 1
    return jnp.sin(jnp.pi * points / (length + periodic))


def gaussian_window(length: int, std: float = 1.0, *, periodic: bool = False, dtype: DTypeLike | None = None) -> jax.Array:
    """Gaussian window (https://pytorch.org/docs/stable/generated/torch.signal.windows.gaussian.html)."""
    periodic = periodic and length > 1
    points = jnp.arange(length, dtype=float if dtype is None else dtype) - (length - 1 + periodic) / 2
    return jnp.exp(-jnp.square(points / std) / 2)


def exponential_window(
    length: int, center: float | None = None, tau: float = 1.0, *, periodic: bool = False, dtype: DTypeLike | None = None
) -> jax.Array:
    """Window that decays from its centre (https://pytorch.org/docs/stable/generated/torch.signal.windows.exponential.html)."""
    periodic = periodic and length > 1
    middle = (length - 1 + periodic) / 2 if center is None else center
    return jnp.exp(-jnp.abs(jnp.arange(length, dtype=float if dtype is None else dtype) - middle) / tau)
