"""Functions that repositories and packages copied from torch, and call instead of torch's own.

A copy is known by what it does to its tensor, call by call; its name says nothing. Torch's
`nn.init.trunc_normal_` was copied widely before releases had it
(https://github.com/pytorch/pytorch/blob/v1.5.0/torch/nn/init.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate_agent.tools.scan.nodes import walk

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class TorchFunction:
    """A function of torch: its dotted name, its parameters with their defaults, the in-place calls on its first parameter, and its local values."""

    name: str
    parameters: tuple[tuple[str, float | None], ...]
    calls: tuple[str, ...]
    values: tuple[str, ...]


ROWS = (
    TorchFunction(
        "torch.nn.init.trunc_normal_",
        (("tensor", None), ("mean", 0.0), ("std", 1.0), ("a", -2.0), ("b", 2.0)),
        ("uniform_(2 * l - 1, 2 * u - 1)", "erfinv_()", "mul_(std * math.sqrt(2.0))", "add_(mean)", "clamp_(min=a, max=b)"),
        ("l = norm_cdf((a - mean) / std)", "u = norm_cdf((b - mean) / std)"),
    ),
)


def torch_copies(functions: Mapping[str, Function]) -> dict[str, str]:
    """Function of a file → the function of torch that it is a copy of.

    The copy may do its work in another function of the file, to which it hands all of its parameters.
    """
    rows = ((name, row.name) for name, function in functions.items() for row in ROWS if _is_copy(function, row, functions))
    return dict(rows)


def _is_copy(function: Function, row: TorchFunction, functions: Mapping[str, Function]) -> bool:
    return _parameters(function) == row.parameters and any(
        tuple(_calls(body, row.parameters[0][0])) == row.calls and set(row.values) <= _values(body)
        for body in (function, *_handed_all(function, functions))
    )


def _parameters(function: Function) -> tuple[tuple[str, float | None], ...]:
    """Names and defaults; nothing that is no number is a default."""
    names = [argument.arg for argument in function.args.args]
    defaults = [default.value if isinstance(default, ast.Constant) else default for default in map(_signed, function.args.defaults)]
    pairs = [*[None] * (len(names) - len(defaults)), *defaults]
    return tuple((name, value) for name, value in zip(names, pairs, strict=True) if value is None or isinstance(value, float | int))


def _signed(node: ast.expr) -> ast.expr:
    """`-2.0` as one constant."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if isinstance(value, float | int):
            return ast.Constant(-value)
    return node


def _handed_all(function: Function, functions: Mapping[str, Function]) -> Iterator[Function]:
    """The functions of the file that are called with all parameters of this one, in their order, under the same names."""
    names = [argument.arg for argument in function.args.args]
    for node in walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and [ast.unparse(value) for value in node.args] == names:
            other = functions.get(node.func.id)
            if other is not None and not node.keywords and [argument.arg for argument in other.args.args] == names:
                yield other


def _calls(function: Function, tensor: str) -> Iterator[str]:
    """The calls of methods of the tensor, in the order of the text."""
    for node in sorted((n for n in ast.walk(function) if isinstance(n, ast.Call)), key=lambda call: (call.lineno, call.col_offset)):
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if name == tensor:
                yield f"{method}({ast.unparse(node).partition(f'.{method}(')[2]}"


def _values(function: Function) -> set[str]:
    return {ast.unparse(node) for node in walk(function) if isinstance(node, ast.Assign)}
