"""Functions that PyTorch has removed, as what took their place computes them: the original may call them. Used inside the sandbox.

Sources: https://github.com/pytorch/pytorch/wiki/The-torch.fft-module-in-PyTorch-1.7 (a last axis of two numbers in place of complex ones),
https://docs.pytorch.org/docs/1.7.1/torch.html (`symeig`, `solve`).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import torch


class Eigen(NamedTuple):
    """What `symeig` gives."""

    eigenvalues: torch.Tensor
    eigenvectors: torch.Tensor


class Solution(NamedTuple):
    """What `solve` gives."""

    solution: torch.Tensor
    LU: torch.Tensor


def rfft(input: torch.Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True) -> torch.Tensor:
    """The transform of real numbers over the last axes, with pairs of real and imaginary parts in a new last axis."""
    function = torch.fft.rfftn if onesided else torch.fft.fftn
    return torch.view_as_real(function(input, dim=_last(signal_ndim), norm=_norm(normalized)))


def irfft(input: torch.Tensor, signal_ndim: int, normalized: bool = False, onesided: bool = True, signal_sizes: Any = None) -> torch.Tensor:
    """The real numbers whose transform this is."""
    values = torch.view_as_complex(input.contiguous())
    over: dict[str, Any] = {"dim": _last(signal_ndim), "norm": _norm(normalized)}
    real: torch.Tensor = (
        torch.fft.irfftn(values, s=tuple(signal_sizes) if signal_sizes else None, **over)
        if onesided
        else torch.fft.ifftn(values, **over).real
    )
    return real


def fft(input: torch.Tensor, signal_ndim: int, normalized: bool = False) -> torch.Tensor:
    """The transform of pairs of real and imaginary parts over the axes before the last."""
    values = torch.view_as_complex(input.contiguous())
    return torch.view_as_real(torch.fft.fftn(values, dim=_last(signal_ndim), norm=_norm(normalized)))


def ifft(input: torch.Tensor, signal_ndim: int, normalized: bool = False) -> torch.Tensor:
    """The pairs whose transform this is."""
    values = torch.view_as_complex(input.contiguous())
    return torch.view_as_real(torch.fft.ifftn(values, dim=_last(signal_ndim), norm=_norm(normalized)))


def symeig(input: torch.Tensor, eigenvectors: bool = False, upper: bool = True) -> Eigen:
    """Eigenvalues of symmetric matrices; without `eigenvectors` these are empty."""
    side = "U" if upper else "L"
    if not eigenvectors:
        return Eigen(torch.linalg.eigvalsh(input, UPLO=side), input.new_empty(0))
    return Eigen(*torch.linalg.eigh(input, UPLO=side))


def solve(input: torch.Tensor, A: torch.Tensor) -> Solution:
    """`X` of `A X = input`, and the factors of `A`."""
    return Solution(torch.linalg.solve(A, input), torch.linalg.lu_factor(A)[0])


def _last(axes: int) -> tuple[int, ...]:
    return tuple(range(-axes, 0))


def _norm(normalized: bool) -> str:
    return "ortho" if normalized else "backward"


class _CallableFft(ModuleType):
    """The module `torch.fft`, which was a function before."""

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return fft(*args, **kwargs)


REMOVED = {function.__name__: function for function in (rfft, irfft, ifft, symeig, solve)}
"""Functions by name; those that are methods of tensors too have the tensor first."""


def restore_functions() -> None:
    """Give PyTorch of this process the removed functions back, and where they were methods, these."""
    vars(torch).update(REMOVED)
    for name, function in (REMOVED | {"fft": fft}).items():
        setattr(torch.Tensor, name, function)
    if type(torch.fft) is ModuleType:
        torch.fft.__class__ = _CallableFft
