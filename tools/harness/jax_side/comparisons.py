"""Whether a program compares numbers that it computes. Used inside the sandbox.

XLA computes a value again in each fusion that needs it, and without LLVM's optimisations it may round otherwise there. `x == x.max()` is nowhere true
then, and the gradient of a maximum is 0 / 0. A program with comparisons between two computed numbers is therefore compiled as a user's would be.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax.extend import core

from migrate_agent.tools.harness.common.xla_flags import quick, usual
from migrate_agent.tools.harness.jax_side.jaxprs import inner_programs

COMPARISONS = frozenset({"eq", "ne", "ge", "gt", "le", "lt"})
CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
)
"""Primitives whose operands are the inner program's."""


def quick_for(program: Any) -> dict[str, str | bool]:
    """Options of a compilation that is to take little time, but where the jaxpr compares what it computes."""
    return usual() if compares(program) else quick()


def compares(program: Any) -> bool:
    """Whether floats of which neither is written in the program are compared in what the results of a jaxpr (closed or not) depend on."""
    jaxpr = getattr(program, "jaxpr", program)
    live = _live(jaxpr)
    return _compares(live, [False] * len(live.invars))


def _live(jaxpr: Any) -> Any:
    """Without what no result depends on; all of it where this jax keeps its own elimination elsewhere."""
    try:
        interpreters: Any = importlib.import_module("jax._src.interpreters.partial_eval")
        return interpreters.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]
    except (ImportError, AttributeError, TypeError):
        return jaxpr


def _compares(jaxpr: Any, fixed: Sequence[bool]) -> bool:
    """`fixed`: which inputs depend on nothing but the program's own numbers."""
    known = {*jaxpr.constvars, *(variable for variable, given in zip(jaxpr.invars, fixed, strict=True) if given)}
    for equation in jaxpr.eqns:
        given = [isinstance(item, core.Literal) or item in known for item in equation.invars]
        if all(given):
            known.update(equation.outvars)
            continue
        if equation.primitive.name in COMPARISONS and not any(given) and _apart(*equation.invars):
            return True
        for inner in inner_programs(equation):
            same = equation.primitive.name in CALLS and len(inner.invars) == len(given)
            if _compares(inner, given if same else [False] * len(inner.invars)):
                return True
    return False


def _apart(one: Any, other: Any) -> bool:
    """Whether these are two floats, and not one compared with itself."""
    return one is not other and bool(jnp.issubdtype(one.aval.dtype, jnp.inexact))
