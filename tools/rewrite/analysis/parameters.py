"""Infers the kinds of a function's parameters from observed reads and from the methods called on
them.

This is what makes code readable that no example ran.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from migrate_agent.tools.rewrite.tables.registry import methods
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed

TENSOR_OR_NONE = Observed(("tensor", "none"))
AMBIGUOUS_METHODS = frozenset(
    "all any argmax argmin argsort astype clip copy count cumprod cumsum diagonal dot extend fill flatten index item max mean min nonzero pop "
    "prod put ravel remove repeat reshape resize reverse round searchsorted sort split squeeze std sum swapaxes take tolist trace transpose update "
    "var conj type to numpy apply train eval children parameters append insert format join keys values items get add clear float double half "
    "is_integer bit_length real imag".split()
)
"""Methods that NumPy arrays, modules or built-in types have too, so that they do not tell a tensor."""


def parameter_facts(
    function: ast.FunctionDef | ast.AsyncFunctionDef, observed: Callable[[ast.expr], Observed | None], uses_torch: bool = True
) -> Mapping[str, Observed]:
    """Parameter → its fact at the start of the function.

    The fact comes from the observed reads before the parameter is rebound, or else from a method
    that only tensors have. Without `uses_torch` methods tell nothing, since another library's
    arrays may have them.
    """
    loads: dict[str, list[ast.Name]] = {}
    stores: dict[str, int] = {}
    shown: set[str] = set()
    called: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Name):
            stores[node.id] = min(node.lineno, stores.get(node.id, node.lineno))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            if uses_torch and _is_tensor_method(node, node.func.attr):
                shown.add(node.func.value.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and uses_torch and _is_tensor_method(node, node.func.attr):
            shown |= _chain_start(node.func.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called.add(node.func.id)
    facts: dict[str, Observed] = {}
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        name = argument.arg
        # Reads after the first rebinding show another value.
        early = [node for node in loads.get(name, ()) if node.lineno <= stores.get(name, node.lineno)]
        fact = _union([fact for node in early if (fact := observed(node)) is not None])
        if fact is not None and fact.kinds != ("none",):
            facts[name] = fact
        # What is called is a function, even if it has a method of a tensor's name.
        elif name in shown and name not in called:
            facts[name] = TENSOR_OR_NONE
    return facts


def _is_tensor_method(call: ast.Call, name: str) -> bool:
    """Whether only a tensor can be the receiver of this call (`x.view(-1, 3)`)."""
    if name == "transpose":
        # NumPy's `transpose(0, 1)` is a permutation of two axes; torch's swaps these two of any
        # number.
        return len(call.args) == 2 and not all(literal_integer(argument) in (0, 1, -1, -2) for argument in call.args)
    base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    return base in methods() and name not in AMBIGUOUS_METHODS


def _chain_start(node: ast.expr) -> set[str]:
    """The name that a chain of tensor methods starts from (`x` of `x.transpose(0, 1)`), as a set of
    at most one.

    The name is a tensor where the result of the chain has a method that only tensors have.
    """
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods():
        node = node.func.value
        if isinstance(node, ast.Name):
            return {node.id}
    return set()


def literal_integer(node: ast.expr) -> int | None:
    """The value of an integer that is written out; `None` for anything else."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None


def _union(facts: list[Observed]) -> Observed | None:
    kinds = tuple(dict.fromkeys(kind for fact in facts for kind in fact.kinds))
    dtypes = tuple(dict.fromkeys(dtype for fact in facts for dtype in fact.dtypes))
    return Observed(kinds, (), dtypes) if kinds else None
