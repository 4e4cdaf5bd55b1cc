"""What rows of several families ask about a call."""

from __future__ import annotations

import ast
from typing import Any

from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Call, Op, Refuse, Template

INTEGERS = frozenset({"int64", "int32", "int16", "int8", "uint8", "bool"})


def spelled(name: str, signature: str, to: Template, *aliases: str, **options: Any) -> list[Op]:
    """A row for `torch.<name>` and its method, and one for each alias.

    An alias with a dot (`special.expit`) is a function only; one without (`absolute`) is a method
    too.
    """
    dotted = tuple(f"torch.{alias}" for alias in aliases if "." in alias)
    plain = [alias for alias in aliases if "." not in alias]
    rows = [Op(f"torch.{name}", signature, to, method=name, aliases=dotted, **options)]
    return rows + [Op(f"torch.{alias}", signature, to, method=alias, **options) for alias in plain]


MAYBE_NONE = "value_of("
"""In the text of an argument: it reads a variable that is None in some configurations."""


def is_kind(call: Call, name: str, *kinds: str) -> bool:
    """Whether the argument was observed, and always as one of these kinds; in another configuration too, where it may be None."""
    fact = call.observed(name)
    if MAYBE_NONE in call.text(name) and "none" not in kinds:
        return False
    return fact is not None and bool(fact.kinds) and set(fact.kinds) <= set(kinds)


def may_be_kind(call: Call, name: str, *kinds: str) -> bool:
    """Whether the argument was at least once observed as one of these kinds."""
    fact = call.observed(name)
    return fact is not None and bool(set(fact.kinds) & set(kinds))


def ndim(call: Call, name: str) -> int | None:
    """The number of axes of the argument; `None` where it was not observed or varies."""
    fact = call.observed(name)
    counts = {len(shape) for shape in fact.shapes} if fact else set()
    return counts.pop() if len(counts) == 1 else None


def is_bool(call: Call, name: str) -> bool:
    """Whether the argument is known to be a tensor of bools."""
    fact = call.observed(name)
    return fact is not None and set(fact.dtypes) == {"bool"}


def is_integral(call: Call, name: str) -> bool:
    """Whether the argument is known to be of integer or bool dtype."""
    fact = call.observed(name)
    if fact is None:
        return False
    if set(fact.kinds) <= {"int", "bool"}:
        return bool(fact.kinds)
    return bool(fact.dtypes) and set(fact.dtypes) <= INTEGERS


def axis(call: Call, name: str = "dim") -> str:
    """The placeholder of an axis argument. A list of axes becomes a tuple, which is all JAX takes."""
    if not call.given(name):
        return f"{{{name}}}"
    value = call.literal(name)
    if isinstance(value, list):
        # The comma keeps a tuple of one axis a tuple.
        return f"({', '.join(map(str, value))}{',' if len(value) == 1 else ''})"
    if value is UNKNOWN and (may_be_kind(call, name, "list") or call.text(name).startswith("[")):
        return f"tuple({{{name}}})"
    return f"{{{name}}}"


def reduction_axis(call: Call, name: str = "dim", tensor: str = "input") -> str:
    """Like `axis`, for reductions: an empty list means all axes, and a tensor without axes takes 0 and -1."""
    # `axis=()` reduces over nothing in NumPy and over everything in torch.
    if call.given(name) and (call.literal(name) in ([], ()) or ndim(call, tensor) == 0):
        return "None"
    # A sequence that turns out empty at run time must reduce over everything as well.
    return f"{axis(call, name)} or None" if _perhaps_empty(call, name) else axis(call, name)


def _perhaps_empty(call: Call, name: str) -> bool:
    """Whether an argument is certainly a sequence that may turn out empty at run time."""
    if not call.given(name) or call.literal(name) is not UNKNOWN:
        return False
    node, fact = ast.parse(call.text(name).strip(), mode="eval").body, call.observed(name)
    # With an element written out it cannot be empty.
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(isinstance(element, ast.Starred) for element in node.elts)
    constructed = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("tuple", "list")
    return constructed or isinstance(node, ast.ListComp) or (fact is not None and set(fact.kinds) <= {"tuple", "list", "size"})


def is_name(call: Call, name: str) -> bool:
    """Whether the argument is a plain name or attribute, which may stand twice in the result."""
    return all(part.isidentifier() for part in call.text(name).split("."))


def sequence(call: Call, name: str) -> str:
    """The placeholder of a variadic argument where JAX wants one sequence.

    A single value stays as the caller wrote it; several become a tuple.
    """
    if call.count(name) == 1 and is_unspread(call, name):
        return f"{{*{name}}}"
    return f"{{{name}}}"


def is_unspread(call: Call, name: str) -> bool:
    """Whether the one value of a variadic argument is not spread with a star."""
    # `f(*xs)` hands over several values although the source shows one argument.
    return not call.text(name).lstrip("( ").startswith("*")


def written_elements(call: Call, name: str) -> list[ast.expr] | None:
    """The elements of an argument that is a tuple or list display, or several values; else `None`."""
    try:
        tree = ast.parse(call.text(name).strip() or "()", mode="eval").body
    except SyntaxError:
        return None
    return list(tree.elts) if isinstance(tree, (ast.Tuple, ast.List)) else None


def required_literal(call: Call, name: str) -> object:
    """The literal value of an argument on which the form of the rewrite depends.

    Raises `Refuse` where the argument is no literal.
    """
    value = call.literal(name)
    if value is UNKNOWN:
        raise Refuse(f"`{name}` is not a literal, and the rewrite depends on its value", "dynamic-argument")
    return value


class Refused:
    """A row's `to` that always refuses, with its reason."""

    def __init__(self, reason: str, code: str = "unsupported") -> None:
        self.reason, self.code = reason, code

    def __call__(self, call: Call) -> str:
        raise Refuse(self.reason, self.code)
