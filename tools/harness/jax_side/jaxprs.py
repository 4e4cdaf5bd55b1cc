"""Walks traced programs (jaxprs): their equations, the programs inside of equations, and the Pallas kernels that are live."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
from jax.extend import core

from migrate_agent.tools.harness.common import operator_kinds

NARROW = (jnp.bfloat16, jnp.float16)
WIDE = (jnp.float32, jnp.float64)


def live_kernels(jaxpr: Any) -> int:
    """The number of Pallas kernels that a program's results depend on."""
    interpreters: Any = importlib.import_module("jax._src.interpreters.partial_eval")
    # jax's elimination of dead code keeps every kernel, because any may have effects; it reduces
    # the rest.
    reduced, _ = interpreters.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return _live(reduced, [True] * len(reduced.outvars))


def _live(jaxpr: Any, used: list[bool]) -> int:
    """The number of kernels that the `used` results of a program depend on; in a loop, that any of its results depends on."""
    needed = {id(variable) for variable, live in zip(jaxpr.outvars, used, strict=True) if live}
    count = 0
    for equation in reversed(jaxpr.eqns):
        live = [id(variable) in needed for variable in equation.outvars]
        if not any(live) and not equation.effects:
            continue
        needed |= {id(variable) for variable in equation.invars}
        if equation.primitive.name == "pallas_call":
            count += 1
            continue
        for inner in inner_programs(equation):
            # The carry of a loop feeds the next iteration, so its results depend on each other.
            matching = len(inner.outvars) == len(live) and equation.primitive.name not in ("scan", "while")
            count += _live(inner, live if matching else [True] * len(inner.outvars))
    return count


def equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a program and its inner programs, except those inside a kernel."""
    for equation in jaxpr.eqns:
        yield equation
        if equation.primitive.name != "pallas_call":
            for inner in inner_programs(equation):
                yield from equations(inner)


def narrow_float(jaxpr: Any) -> str:
    """The name of a float dtype below float32 that a result of the program has, the one with the fewest bits of mantissa; "" where there is none."""
    finfo: Any = jnp.finfo
    dtypes = {variable.aval.dtype for equation in equations(jaxpr) for variable in equation.outvars if hasattr(variable.aval, "dtype")}
    narrow = [dtype for dtype in dtypes if jnp.issubdtype(dtype, jnp.floating) and finfo(dtype).nmant < finfo(jnp.float32).nmant]
    return min((finfo(dtype).nmant, str(dtype)) for dtype in narrow)[1] if narrow else ""


def narrow_kinds(jaxpr: Any) -> list[str]:
    """The kinds of operators (`operator_kinds`) that the program computes in a float dtype below float32."""
    names = {
        equation.primitive.name
        for equation in equations(jaxpr)
        if any(getattr(variable.aval, "dtype", None) in (jnp.bfloat16, jnp.float16) for variable in equation.outvars)
    }
    products = {operator_kinds.PRODUCTS} if _multiplies_rounded(jaxpr, set())[0] else set()
    return sorted({operator_kinds.JAX[name] for name in names & operator_kinds.JAX.keys()} | products)


def _multiplies_rounded(jaxpr: Any, rounded: set[Any]) -> tuple[bool, list[bool]]:
    """Whether a product has an operand that was rounded from float32 or wider to a narrower dtype, and which results of the program were.

    `rounded` are variables that were so before. Of loops and branches only what happens inside of them counts.
    """
    multiplied = False
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        moved = any(_is_in(one, rounded) for one in equation.invars)
        multiplied |= moved and name in operator_kinds.JAX_PRODUCTS
        if name == "convert_element_type":
            before, after = (one.aval.dtype for one in (equation.invars[0], equation.outvars[0]))
            moved |= before in WIDE and after in NARROW
        elif name not in operator_kinds.JAX_LAYOUTS:
            moved = False
        rounded |= set(equation.outvars) if moved else set()
        for inner in inner_programs(equation):
            alike = len(inner.invars) == len(equation.invars)
            entering = {one for one, outer in zip(inner.invars, equation.invars, strict=True) if _is_in(outer, rounded)} if alike else set()
            inside, results = _multiplies_rounded(inner, entering)
            multiplied |= inside
            if len(results) == len(equation.outvars):
                rounded |= {one for one, result in zip(equation.outvars, results, strict=True) if result}
    return multiplied, [_is_in(one, rounded) for one in jaxpr.outvars]


def _is_in(variable: Any, variables: set[Any]) -> bool:
    """Whether it is one of these; a literal is none."""
    return isinstance(variable, core.Var) and variable in variables


def inner_programs(equation: Any) -> Iterator[Any]:
    """The programs in an equation's parameters (the body of `scan`, the branches of `cond`, …)."""
    for value in equation.params.values():
        for inner in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(inner, core.ClosedJaxpr):
                yield inner.jaxpr
            elif isinstance(inner, core.Jaxpr):
                yield inner
