"""Counts a traced program's operations, traffic and memory from its jaxpr, where no compiler is asked. Used inside the sandbox.

Loops count as often as they run, unlike the TPU compiler's figures. Nothing is fused here, so memory is more than a compiled program needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.harness.jax_side.jaxprs import equations, inner_programs

MOVES = frozenset(
    "broadcast_in_dim concatenate convert_element_type copy device_put dynamic_slice dynamic_update_slice expand_dims gather iota pad"
    " reshape rev select_n slice split squeeze stop_gradient transpose".split()
)
"""Primitives that move numbers and compute none."""
KEPT = ("parameter", "optimiser", "state")
"""Roles whose arguments stay from step to step; where the batch is split over devices, each of them holds all of these."""


def count(jaxpr: Any, arguments: Sequence[Mapping[str, Any]], results: Sequence[str]) -> dict[str, Any]:
    """`flops`; `bytes`, read and written at least: arguments and results once; `peak` bytes held at once; `kept` of them on every device.

    `arguments` are rows with the `role` of each argument, `results` the role of each result; a donated argument's result takes no memory of its
    own. `unknown` counts loops of unknown length and kernels, of which one pass, or nothing, is counted.
    """
    program = jaxpr.jaxpr
    kept = sum(size(variable) for variable, row in zip(program.invars, arguments, strict=True) if row["role"] in KEPT)
    gradients = sum(size(variable) for variable, role in zip(program.outvars, results, strict=True) if role == "parameter")
    given = sum(map(size, program.invars))
    donated = sum(size(variable) for variable, role in zip(program.outvars, results, strict=True) if role in KEPT)
    unknown = sum(equation.primitive.name in ("while", "pallas_call") for equation in equations(program))
    return {
        "flops": flops(program),
        "bytes": float(given + sum(map(size, program.outvars))),
        "peak": given + max(_held(program) - donated, 0),
        "kept": kept + gradients,
        "unknown": unknown,
    }


def flops(jaxpr: Any) -> float:
    """Operations of a program: two for each product and sum of a matrix product, one for each number that anything else computes."""
    return sum(map(_of_equation, jaxpr.eqns))


def size(variable: Any) -> int:
    """Bytes of a variable's array; random keys and tokens count as none."""
    width = getattr(getattr(variable.aval, "dtype", None), "itemsize", 0)
    return int(math.prod(getattr(variable.aval, "shape", ())) * width)


def _of_equation(equation: Any) -> float:
    name, inner = equation.primitive.name, [flops(program) for program in inner_programs(equation)]
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return float(2 * _numbers(equation.outvars) * math.prod(shape[axis] for axis in contracted))
    if name == "conv_general_dilated":
        return _of_convolution(equation)
    if name == "scan":
        return float(equation.params["length"]) * sum(inner)
    if name == "cond":
        return max(inner, default=0.0)
    if inner or name == "pallas_call":
        return sum(inner) if name != "pallas_call" else 0.0
    if name in MOVES:
        return 0.0
    # A reduction, or an update of some places, computes with what goes in: more than what comes out.
    reduces = name.startswith(("reduce", "arg", "cum"))
    return float(_numbers(equation.invars[:1] if reduces else equation.outvars))


def _of_convolution(equation: Any) -> float:
    """Zeros that a dilated input brings are not counted, as no library multiplies by them."""
    features = equation.params["dimension_numbers"].rhs_spec[0]
    kernel = equation.invars[1].aval.shape
    each = math.prod(kernel) / max(kernel[features], 1)
    return float(2 * _numbers(equation.outvars) * each / math.prod(equation.params["lhs_dilation"]))


def _numbers(variables: Sequence[Any]) -> int:
    return sum(math.prod(getattr(variable.aval, "shape", ())) for variable in variables)


def _held(jaxpr: Any) -> int:
    """The most bytes that a program's own values hold at once, its arguments aside."""
    last = {id(variable): number for number, equation in enumerate(jaxpr.eqns) for variable in _variables(equation.invars)}
    ends = {id(variable) for variable in _variables(jaxpr.outvars)}
    own = {id(variable): size(variable) for equation in jaxpr.eqns for variable in equation.outvars}
    live = most = 0
    for number, equation in enumerate(jaxpr.eqns):
        inside = max((_held(program) for program in inner_programs(equation)), default=0)
        made = sum(own[id(variable)] for variable in equation.outvars)
        # A loop fills its results while its body holds values; what another program inside returns is what the equation gives.
        most = max(most, live + (made + inside if equation.primitive.name in ("scan", "while") else max(made, inside)))
        live += sum(own[id(variable)] for variable in equation.outvars if id(variable) in last or id(variable) in ends)
        over = {id(variable) for variable in _variables(equation.invars) if last[id(variable)] == number}
        live -= sum(own.get(key, 0) for key in over - ends)
    return most


def _variables(items: Sequence[Any]) -> Iterator[Any]:
    """Those of an equation's operands that are no literals."""
    return (item for item in items if not hasattr(item, "val"))
