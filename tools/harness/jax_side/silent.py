"""Programs without what they only report to the host: such callbacks give nothing, and no exported program can have any. Used inside the sandbox."""

from __future__ import annotations

from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr

REPORTS = "debug_callback"
"""The primitive of `jax.debug.callback`, by which loops tell the harness the keys that they draw with."""


def silent(value: Any) -> Any:
    """A program, or what an operation of one holds, without reports: in loops, branches and calls too."""
    replaced: Any = getattr(value, "replace", None)
    # Since JAX 0.12 the two classes are one, whose `jaxpr` is itself.
    if isinstance(value, ClosedJaxpr) and value.jaxpr is not value:
        return replaced(jaxpr=silent(value.jaxpr))
    if isinstance(value, Jaxpr):
        equations = [
            equation.replace(params={name: silent(inner) for name, inner in equation.params.items()}, effects=_others(equation.effects))
            for equation in value.eqns
            if equation.primitive.name != REPORTS
        ]
        return replaced(eqns=equations, effects=_others(value.effects))
    if type(value) in (tuple, list):
        return type(value)(map(silent, value))
    return value


def _others(effects: Any) -> Any:
    """These effects without that of reports, which has no public name."""
    return {effect for effect in effects if type(effect).__name__ != "DebugEffect"}
