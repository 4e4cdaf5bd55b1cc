"""Losses as JAX code says them (https://optax.readthedocs.io/en/latest/api/losses.html).

Optax's own cross entropies and its losses of logits give infinities where torch's give NaN, so that they are no idioms here.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import is_integral, ndim
from migrate_agent.tools.rewrite.tables.ops.functional import F
from migrate_agent.tools.rewrite.tables.registry import Call, Idiom

REDUCED = {"mean": ".mean()", "sum": ".sum()", "none": ""}
LEGACY = ("size_average", "reduce")


def is_wide(call: Call, name: str) -> bool:
    """Whether a tensor was seen in float32 or wider alone: torch computes losses of narrower ones in float32."""
    fact = call.observed(name)
    return fact is not None and bool(fact.dtypes) and set(fact.dtypes) <= {"float32", "float64"}


def _cross_entropy(call: Call) -> str:
    """Of logits and one label for each; classes with weights and smoothed labels keep the whole helper."""
    axes, of = ndim(call, "input"), ndim(call, "target")
    of_labels = axes is not None and of is not None and axes == of + 1 >= 2 and is_integral(call, "target") and is_wide(call, "input")
    as_usual = call.literal("label_smoothing") == 0.0 and call.literal("weight") is None and not any(map(call.given, LEGACY))
    reduction = call.literal("reduction")
    if not of_labels or not as_usual or reduction not in REDUCED:
        return ""
    arguments = "{input}, {target}, ignore_index={ignore_index}" + ("" if axes == 2 else ", axis=1")
    if reduction == "mean":
        return f"vendored.label_cross_entropy({arguments})"
    return f"vendored.label_losses({arguments}){REDUCED[reduction]}"


def _mse_loss(call: Call) -> str:
    reduction = None if call.literal("weight") is not None or any(map(call.given, LEGACY)) else _reduction_of_equals(call)
    return "" if reduction is None else f"optax.squared_error({{input}}, {{target}}){reduction}"


def _huber_loss(call: Call) -> str:
    threshold, reduction = call.literal("delta"), None if call.literal("weight") is not None else _reduction_of_equals(call)
    is_positive = type(threshold) in (int, float) and threshold > 0
    return "" if reduction is None or not is_positive else f"optax.huber_loss({{input}}, {{target}}, delta={{delta}}){reduction}"


def _smooth_l1_loss(call: Call) -> str:
    """With its threshold at 1 it is Huber's."""
    reduction = None if call.literal("beta") != 1 or any(map(call.given, LEGACY)) else _reduction_of_equals(call)
    return "" if reduction is None else f"optax.huber_loss({{input}}, {{target}}){reduction}"


def _reduction_of_equals(call: Call) -> str | None:
    """How the losses of two arrays of one shape are reduced; None where they may have several shapes, since Optax refuses to broadcast."""
    shapes = [fact.shapes if (fact := call.observed(name)) else () for name in ("input", "target")]
    return REDUCED.get(str(call.literal("reduction"))) if shapes[0] and shapes[0] == shapes[1] else None


ROWS = (
    Idiom(f"{F}cross_entropy", _cross_entropy),
    Idiom(f"{F}mse_loss", _mse_loss),
    Idiom(f"{F}huber_loss", _huber_loss),
    Idiom(f"{F}smooth_l1_loss", _smooth_l1_loss),
)
