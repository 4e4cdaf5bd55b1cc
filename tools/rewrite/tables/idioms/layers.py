"""Functions of layers, written out in `jax.nn` and `jax.numpy`."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.idioms.losses import is_wide
from migrate_agent.tools.rewrite.tables.ops.calls import is_kind, ndim
from migrate_agent.tools.rewrite.tables.ops.functional import F
from migrate_agent.tools.rewrite.tables.registry import Call, Idiom


def _layer_norm(call: Call) -> str:
    """Over the last axis, which a weight or bias of one axis shows."""
    over_one = 1 in (ndim(call, "weight"), ndim(call, "bias"))
    return "vendored.normalise_last({input}, {weight=None}, {bias=None}, {eps=1e-05})" if over_one and is_wide(call, "input") else ""


def _linear(call: Call) -> str:
    product = "{input} @ {weight}.T"
    if not call.given("bias") or call.literal("bias") is None:
        return product
    # What a class inherits of a layer is None where its constructor says so, whatever the examples saw.
    inherited = call.text("bias") == "self.bias"
    return f"{product} + {{bias}}" if is_kind(call, "bias", "tensor", "parameter") and not inherited else ""


ROWS = (Idiom(f"{F}layer_norm", _layer_norm), Idiom(f"{F}linear", _linear))
