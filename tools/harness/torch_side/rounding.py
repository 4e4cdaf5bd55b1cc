"""Rounding noise: perturbs torch's own float64 results as much as another right program may differ. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_map

from migrate_agent.tools.harness.torch_side.precision import OperatorMode

ROUNDS = frozenset(
    """add addbmm addcdiv addcmul addmm addmv baddbmm cumprod cumsum div elu erf exp expm1 gelu hardsigmoid hardswish lerp log log1p mish mul
    pow rsqrt sigmoid silu softplus sqrt sub tanh true_divide""".split()
)
"""Operators with rounded results that torch has in place as well."""
ROUNDED = frozenset({"mean", "tanh", "tanh_", "sigmoid", "sigmoid_", "erf", "erf_", "_softmax"})
"""Operators whose integral results are perturbed too: another right program need not give integers, and they are no indices.

A mean may multiply by the inverse of the count; a saturated sigmoid is 1, and gradients are made of it.
"""
PRODUCTS, TOTALS = frozenset({"mul", "div"}), frozenset({"add", "sub", "rsub"})
"""Operators that take a plain number: JAX rounds it to the dtype of the array first, torch does not where that is narrow."""
SUMS = frozenset({torch.ops.aten.add.Tensor, torch.ops.aten.sub.Tensor})


def _softplus(value: torch.Tensor, beta: float = 1.0, threshold: float = 20.0) -> torch.Tensor:
    return torch.where(value * beta > threshold, torch.exp(-value * beta) / beta, 0.0)


def _softplus_backward(gradient: torch.Tensor, value: torch.Tensor, beta: float, threshold: float) -> torch.Tensor:
    return gradient * beta * _softplus(value, beta, threshold)


CUT: dict[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten.softplus.default: _softplus,
    torch.ops.aten.softplus_backward.default: _softplus_backward,
}
"""Terms that torch cuts off past a threshold (2e-9 at most), and that other right formulas include."""

LONG = 64
"""The sum of more terms than this is off by more than one rounding: by `TERM_OF_MEAN` for each term …"""
MOST_TERMS = 2**14
"""… of this many at most."""
NEAR = 8
"""So many times their mean is the largest of nearly equal terms."""
SHARES = {torch.ops.aten._softmax.default: True, torch.ops.aten._log_softmax.default: False}
"""Operators that divide by the sums along an axis, their second argument, and whether the result is that share or its logarithm."""
TOTALLED = frozenset({torch.ops.aten.sum.default, torch.ops.aten.sum.dim_IntList, torch.ops.aten.mean.default, torch.ops.aten.mean.dim})
SPREADS = {torch.ops.aten.var.correction: 1.0, torch.ops.aten.std.correction: 0.5}
"""Operators that give a variance, to the power of this."""


def _of_layer(args: Sequence[Any]) -> tuple[Sequence[int], torch.Tensor | None]:
    """`native_layer_norm`: its means have the axes of the input, of size 1 where it normalises."""
    values, normalised, weight = args[:3]
    whole = values.ndim - len(normalised)
    return (*values.shape[:whole], *[1] * len(normalised)), weight


def _of_batch(args: Sequence[Any]) -> tuple[Sequence[int], torch.Tensor | None]:
    """`native_batch_norm`: a mean for each channel, where it is training."""
    values, weight, training = args[0], args[1], args[5]
    beside = (1, values.shape[1], *[1] * (values.ndim - 2))
    return (beside if training else ()), None if weight is None else weight.reshape(beside)


def _of_groups(args: Sequence[Any]) -> tuple[Sequence[int], torch.Tensor | None]:
    """`native_group_norm`: a mean for each group of each sample."""
    values, weight, samples, groups = args[0], args[1], args[3], args[6]
    return (samples, groups), None if weight is None else weight.reshape(1, values.shape[1], *[1] * (values.ndim - 2))


NORMS: dict[Any, Callable[[Sequence[Any]], tuple[Sequence[int], torch.Tensor | None]]] = {
    torch.ops.aten.native_layer_norm.default: _of_layer,
    torch.ops.aten.native_batch_norm.default: _of_batch,
    torch.ops.aten.native_group_norm.default: _of_groups,
}
"""Normalisations, which give the means and the scales that they took beside their output."""
WITHOUT_FRACTIONS = 2.0**52
"""From here on every float64 is a whole number."""
FEW = 64
"""So many elements of a tensor are looked at first."""
ALIKE = 100.0
"""The inverse of a deviation from which on what is normalised counts as equal numbers."""
TERM_OF_MEAN = 1 / 64
"""The rounding of each term, as a share of the noise's own: that comes to 1/8 ulp, as at edges (`tolerances.FLOOR_EQUAL_TERM`)."""


class RoundingNoise(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that changes every computed float64 result, in place ones too, by up to `share` of itself (one ulp) at random."""

    def __init__(self, seed: int, share: float = 2.0**-52) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.generator = torch.Generator().manual_seed(seed)
        self.share = share

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func` and perturb its results, unless they alias its arguments or are integers (exact, and perhaps an index later)."""
        result = func(*args, **(kwargs or {}))
        fresh, rounds = _results(func)
        if func in CUT:
            result = result + CUT[func](*args, **(kwargs or {})) * self._signs(result.shape) / self.share
        if func in NORMS:
            result = (self.off_mean(result, NORMS[func](args)), *result[1:])
        if func in SPREADS:
            result = self.off_centre(result, SPREADS[func], args, kwargs or {})
        if func in SHARES and result.ndim:
            shares = result if SHARES[func] else result.exp()
            off = self.off_sums(shares.sum(args[1], keepdim=True), shares, [args[1]])
            result = result * (1 + off) if SHARES[func] else result + off
        if func in TOTALLED and isinstance(result, torch.Tensor) and not _is_integral(result):
            axes = list(args[1]) if len(args) > 1 and args[1] else list(range(args[0].ndim))
            result = result * (1 + self.off_sums(result, args[0], axes))
        if func in SUMS and fresh:
            result = self.cancelled(result, args[:2])
        if fresh:
            result = self.with_rounded_number(func.overloadpacket.__name__, result, args[:2])
        if isinstance(result, torch.Tensor):
            whole = func.overloadpacket.__name__ in ROUNDED
            return self.perturb(result, whole) if fresh else result.copy_(self.perturb(result.clone(), whole)) if rounds else result
        return tree_map(self.perturb, result) if fresh else result

    def cancelled(self, result: Any, terms: Sequence[Any]) -> Any:
        """A sum with the rounding of its broadcast term (a mean that is subtracted) perturbed for each element anew.

        A compiler may compute that term again for each element. Where the two terms cancel, its rounding
        is larger than that of the sum.
        """
        for term in terms:
            if isinstance(term, torch.Tensor) and term.dtype == result.dtype == torch.float64 and 1 < term.numel() < result.numel():
                if not torch.equal(term, torch.round(term)):
                    result = result + self._signs(result.shape) * term
        return result

    def off_centre(self, result: Any, power: float, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A variance (or its root, by `power`) about a mean that is off by the rounding of its sum, which of equal terms has one direction.

        Where all elements are alike nothing else is left of a variance, and a program divides by it.
        """
        values, axes = args[0], list(args[1] if len(args) > 1 and args[1] is not None else range(args[0].ndim))
        if values.dtype != torch.float64 or not values.numel() or not result.numel():
            return result
        centre = values.mean(axes, keepdim=bool(kwargs.get("keepdim", False)))
        terms = values.numel() / max(result.numel(), 1)
        off = centre * self._signs(centre.shape) * max(1.0, terms * TERM_OF_MEAN)
        return (result ** (1 / power) + off * off) ** power

    def off_sums(self, totals: torch.Tensor, terms: torch.Tensor, axes: list[int]) -> Any:
        """The share by which sums, or means, of `terms` over these axes are off, in the shape of the `totals`. Where the terms of a long sum are nearly equal,
        as those of a softmax may be, their roundings have one direction."""
        count = terms.numel() // max(totals.numel(), 1)
        if count <= LONG or totals.dtype != torch.float64 or terms.dtype != torch.float64:
            return 0.0
        alike = terms.abs().amax(axes) <= NEAR * terms.mean(axes).abs()
        return alike.reshape(totals.shape) * self._signs(totals.shape) * (min(count, MOST_TERMS) * TERM_OF_MEAN)

    def off_mean(self, result: Any, beside: tuple[Sequence[int], torch.Tensor | None]) -> Any:
        """The output of a normalisation whose mean is off by the rounding of its sum. `beside`: the shape in which each mean stands beside its elements, and
        the weight in the shape of its own axes; an empty one where the operator took other statistics."""
        values, mean, scale = result[:3]
        shape, weight = beside
        if not shape or values.dtype != torch.float64 or not values.numel() or mean.numel() == 0:
            return values
        # Of unequal terms the roundings have both directions, and next to nothing is left.
        alike = (scale > ALIKE) | (mean.abs() * scale > ALIKE**1.5)
        off = alike * mean * scale * self._signs(mean.shape) * max(1.0, values.numel() / mean.numel() * TERM_OF_MEAN)
        if len(shape) == values.ndim:
            shifted = off.reshape(tuple(shape)).expand_as(values)
        else:  # groups of channels: one mean for all of a group
            samples, groups = shape
            shifted = off.reshape(samples, groups, 1).expand(samples, groups, values.numel() // (samples * groups)).reshape(values.shape)
        return values + (shifted if weight is None else shifted * weight)

    def with_rounded_number(self, name: str, result: Any, operands: Sequence[Any]) -> Any:
        """A result with the plain number among its operands changed by up to `share` of itself: for all elements alike."""
        number = next((operand for operand in operands if type(operand) is float and not _is_exact(operand)), None)
        if number is None or not isinstance(result, torch.Tensor) or result.dtype != torch.float64:
            return result
        sign = self._signs(())
        return result * (1 + sign) if name in PRODUCTS else result + sign * number if name in TOTALS else result

    def _signs(self, shape: Any) -> torch.Tensor:
        return torch.rand(shape, generator=self.generator, dtype=torch.float64).sub_(0.5).mul_(2 * self.share)

    def perturb(self, value: Any, whole: bool = False) -> Any:
        """`value` times 1 ± `share` where it is a float64 tensor with a fractional value; integral ones too where `whole`."""
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float64 or not value.numel():
            return value
        if not whole and _is_integral(value):
            return value
        signs = self._signs(value.shape)
        # In place where that is safe: the copies would double the memory of a run.
        return value.mul_(signs.add_(1)) if value.is_contiguous() and not value._is_view() else value * (1 + signs)


def _is_integral(value: torch.Tensor) -> bool:
    """Whether all elements are whole numbers, and not only for being so large. The first few tell of most tensors that not all are."""
    first = value.reshape(-1)[:FEW] if value.is_contiguous() else value
    is_whole = torch.equal(first, torch.round(first)) and (first is value or torch.equal(value, torch.round(value)))
    return is_whole and bool(value.abs().max() < WITHOUT_FRACTIONS)


@cache
def _is_exact(number: float) -> bool:
    """Whether a number is the same in all dtypes, as 0.5 is and 0.1 is not."""
    return bool(torch.tensor(number, dtype=torch.bfloat16).item() == number)


@cache
def _results(func: Any) -> tuple[bool, bool]:
    """Whether an operator's results are new memory, and whether it computes rounded numbers in place. Cached for each operator."""
    name = func._schema.name.rpartition("::")[2]
    fresh = all(item.alias_info is None for item in func._schema.returns)
    return fresh, not fresh and name.endswith("_") and name[:-1] in ROUNDS
