"""Cumulative functions and differences (https://pytorch.org/docs/stable/torch.html#reduction-ops)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.calls import INTEGERS, axis, ndim, spelled
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template


def _cumulative(name: str) -> Template:
    def to(call: Call) -> str:
        fact = call.observed("input")
        # Torch accumulates every integer dtype in int64, JAX keeps int8 and lets it wrap around.
        narrow = fact is not None and bool(fact.dtypes) and set(fact.dtypes) <= INTEGERS - {"int64", "bool"}
        dtype = "int" if narrow and not call.given("dtype") else "{dtype}"
        # A tensor without axes accepts `dim=0` in torch.
        if ndim(call, "input") == 0:
            return f"vendored.{name}({{input}}, {{dim}}, dtype={dtype})"
        return f"jnp.{name}({{input}}, axis={{dim}}, dtype={dtype})"

    return to


ROWS = [
    *spelled("cumsum", "input, dim, *, dtype=None", _cumulative("cumsum"), inplace=True),
    *spelled("cumprod", "input, dim, *, dtype=None", _cumulative("cumprod"), inplace=True),
    *spelled("logcumsumexp", "input, dim", "vendored.logcumsumexp({input}, {dim})"),
    *spelled("cummax", "input, dim", "vendored.cummax({input}, {dim})", returns="tuple"),
    *spelled("cummin", "input, dim", "vendored.cummin({input}, {dim})", returns="tuple"),
    *spelled(
        "diff", "input, n=1, dim=-1, prepend=None, append=None", "jnp.diff({input}, {n=1}, axis={dim}, prepend={prepend}, append={append})"
    ),
    Op(
        "torch.gradient",
        "input, *, spacing=1, dim=None, edge_order=1",
        lambda call: f"vendored.gradient({{input}}, spacing={{spacing}}, dim={axis(call)}, edge_order={{edge_order}})",
        returns="list",
    ),
    Op("torch.trapezoid", "y, x=None, *, dx=1, dim=-1", "jnp.trapezoid({y}, {x=None}, dx={dx}, axis={dim})", aliases=("torch.trapz",)),
    Op("torch.cumulative_trapezoid", "y, x=None, *, dx=1, dim=-1", "vendored.cumulative_trapezoid({y}, {x=None}, dx={dx}, dim={dim})"),
]
