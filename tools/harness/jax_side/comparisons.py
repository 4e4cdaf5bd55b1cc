"""Finds out whether a program compares numbers that it computes. Used inside the sandbox.

XLA computes a value again in each fusion that needs it, and without LLVM's optimisations it may round otherwise there. `x == x.max()` is nowhere true
then, and the gradient of a maximum is 0 / 0. A program with comparisons between two computed numbers is therefore compiled as a user's would be.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax.extend import core

from migrate_agent.tools.harness.common.xla_flags import LEVEL, quick, usual
from migrate_agent.tools.harness.jax_side.convolutions import slow
from migrate_agent.tools.harness.jax_side.jaxprs import equations, inner_programs

COMPARISONS = frozenset({"eq", "ne", "ge", "gt", "le", "lt"})
CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
)
"""Primitives whose operands are, in order, those of the inner program."""
FIRST_LEVEL = {LEVEL: "1"}


def quick_for(program: Any) -> dict[str, str | bool]:
    """Compiler options for short compilation; those of a user's program where the jaxpr compares computed numbers, and with LLVM's first level of
    optimisation where it spreads inputs of convolutions."""
    if compares(program):
        return usual()
    return {**quick(), **FIRST_LEVEL} if spreads(program) else quick()


def spreads(program: Any) -> bool:
    """Whether a large convolution of a jaxpr (closed or not) has zeros between its inputs that stay there (`convolutions.slow`).

    The CPU backend gives those to no library, and its own loops take thirty times as long without any optimisation.
    """
    convolutions = (row for row in equations(getattr(program, "jaxpr", program)) if row.primitive.name == "conv_general_dilated")
    return any(slow(*(item.aval for item in (*row.invars, *row.outvars)), **row.params) for row in convolutions)


def compares(program: Any) -> bool:
    """Whether the live part of a jaxpr (closed or not) compares two computed floats."""
    jaxpr = getattr(program, "jaxpr", program)
    live = _live(jaxpr)
    return _compares(live, [False] * len(live.invars))


def _live(jaxpr: Any) -> Any:
    """The jaxpr without dead equations; as it is where this jax has no such function."""
    try:
        interpreters: Any = importlib.import_module("jax._src.interpreters.partial_eval")
        return interpreters.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars), instantiate=True)[0]
    except (ImportError, AttributeError, TypeError):
        return jaxpr


def _compares(jaxpr: Any, fixed: Sequence[bool]) -> bool:
    """Whether two computed floats are compared; `fixed` says which inputs depend on constants alone."""
    constants = {*jaxpr.constvars, *(variable for variable, constant in zip(jaxpr.invars, fixed, strict=True) if constant)}
    for equation in jaxpr.eqns:
        constant = [isinstance(item, core.Literal) or item in constants for item in equation.invars]
        if all(constant):
            constants.update(equation.outvars)
            continue
        if equation.primitive.name in COMPARISONS and not any(constant) and _apart(*equation.invars):
            return True
        for inner in inner_programs(equation):
            # Operands of loops and branches are not those of their bodies, so nothing is known to
            # be constant there.
            matching = equation.primitive.name in CALLS and len(inner.invars) == len(constant)
            if _compares(inner, constant if matching else [False] * len(inner.invars)):
                return True
    return False


def _apart(one: Any, other: Any) -> bool:
    """Whether these are two floats, and not one compared with itself."""
    return one is not other and bool(jnp.issubdtype(one.aval.dtype, jnp.inexact))
