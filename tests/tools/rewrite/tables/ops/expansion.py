"""Expands a row's template for a call written as source: the template language of `tools/rewrite/tables.py`, by plain `ast`.

It is independent of the engine on purpose, so that the rows are tested against the documented language and not against one reader of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from migrate_agent.tools.record.observe import is_whole
from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Op, idioms, is_repeatable, methods, ops
from migrate_agent.tools.types import Observed

PLACEHOLDER = re.compile(r"\{(\*?)(\w+)(?:=([^{}]*))?\}")
DROPPED_BY_ENGINE = {"out", "device", "layout", "pin_memory", "requires_grad", "memory_format", "generator", "non_blocking", "inplace"}
RANDOMNESS = {"rng": "jax.random.key(0)", "rngs": "nnx.Rngs(0)"}
MISSING = ast.Name(id="_missing", ctx=ast.Load())


def kind(value: object) -> str:
    """The kind of a value, as in `Observed.kinds`."""
    names = {torch.Tensor: "tensor", torch.Size: "size", torch.dtype: "dtype", torch.device: "device", type(None): "none"}
    return names.get(type(value), type(value).__name__)


def observe(value: object) -> Observed:
    """What the recorder would say about `value`."""
    if isinstance(value, torch.Tensor):
        return Observed(("tensor",), (tuple(value.shape),), (str(value.dtype).removeprefix("torch."),), is_whole(value))
    return Observed((kind(value),))


def dtype_constants(text: str) -> str:
    """The text with torch's dtypes spelled as JAX's; any other torch name becomes one that does not exist."""
    for name in ("int64", "int32", "int16", "int8", "uint8", "float64", "float32", "float16", "bfloat16", "complex64", "complex128"):
        text = text.replace(f"torch.{name}", f"jnp.{name}")
    return text.replace("torch.bool", "jnp.bool_").replace("torch.", "_no_such_name_.")


@dataclass
class Bound:
    """A call bound to its row's signature; implements `tables.Call`."""

    row: Op
    values: Mapping[str, ast.expr | list[ast.expr]]
    defaults: Mapping[str, ast.expr]
    env: Mapping[str, Any]
    names: tuple[str, ...] = ()

    def given(self, name: str) -> bool:
        return bool(self.values.get(name))

    def node(self, name: str) -> ast.expr | None:
        """One value; several of a variadic argument as a tuple, a single sequence as it is."""
        value = self.values.get(name, self.defaults.get(name))
        if isinstance(value, list):
            only = value[0] if len(value) == 1 else None
            return only if isinstance(only, (ast.Tuple, ast.List)) else ast.Tuple(elts=value, ctx=ast.Load())
        return value

    def text(self, name: str) -> str:
        value = self.values.get(name, self.defaults.get(name))
        assert value is not None, f"{self.row.name} has no argument {name}"
        return dtype_constants(", ".join(map(ast.unparse, value)) if isinstance(value, list) else ast.unparse(value))

    def literal(self, name: str) -> Any:
        value = self.values.get(name, self.defaults.get(name))
        node = ast.Tuple(elts=value, ctx=ast.Load()) if isinstance(value, list) else value
        try:
            return ast.literal_eval(node) if node is not None else UNKNOWN
        except ValueError:
            return UNKNOWN

    def evaluate(self, node: ast.expr) -> Any:
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<argument>", "eval")
        return eval(code, {**self.env, "torch": torch})

    def observed(self, name: str) -> Observed | None:
        value = self.values.get(name)
        if isinstance(value, list):
            value = value[0] if value else None
        if value is None and ast.unparse(self.defaults.get(name, MISSING)) == "None":
            return Observed(("none",))
        return None if value is None else observe(self.evaluate(value))

    def innermost(self, name: str) -> list[Observed | None]:
        return self.each(name)

    def each(self, name: str) -> list[Observed | None]:
        value = self.values.get(name)
        if isinstance(value, (ast.List, ast.Tuple)):
            value = value.elts
        return [observe(self.evaluate(one)) for one in value] if isinstance(value, list) else []

    def is_handed(self, name: str) -> bool:
        return False

    def is_position(self, name: str) -> bool:
        return False

    def constant(self, name: str) -> Any:
        return self.literal(name)

    def may_be_empty_vector(self, name: str) -> bool:
        return False

    def is_known(self, name: str) -> bool:
        return False

    def are_amounts(self, name: str) -> bool:
        return False

    def repeats(self, name: str) -> bool:
        return is_repeatable(ast.parse(self.text(name), mode="eval").body)

    def draws(self, name: str) -> bool:
        return False

    def count(self, name: str) -> int:
        value = self.values.get(name, [])
        return len(value) if isinstance(value, list) else 1

    def parts(self) -> tuple[str, ...]:
        return self.names


def bind(row: Op, call: ast.Call, receiver: ast.expr | None, env: Mapping[str, Any]) -> Bound:
    """Bind by Python's rules; a variadic argument may also be given by keyword (`size=`), as torch allows. Raises `TypeError`."""
    definition = ast.parse(f"def f({row.signature}): ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    spec = definition.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    defaults = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
    defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
    positional = ([receiver] if receiver is not None else []) + call.args
    values: dict[str, Any] = dict(zip(names, positional, strict=False))
    rest = positional[len(names) :]
    if spec.vararg:
        values[spec.vararg.arg] = rest
    elif rest:
        raise TypeError(f"{row.name}: too many arguments")
    allowed = {*names, *(a.arg for a in spec.kwonlyargs), *((spec.vararg.arg,) if spec.vararg else ())}
    for keyword in call.keywords:
        assert keyword.arg is not None
        if keyword.arg in allowed:
            values[keyword.arg] = [keyword.value] if spec.vararg and keyword.arg == spec.vararg.arg else keyword.value
        elif keyword.arg not in DROPPED_BY_ENGINE:
            raise TypeError(f"{row.name}: unexpected argument {keyword.arg}")
    return Bound(row, values, defaults, env)


class _Fill(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr | list[ast.expr]]) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> Any:
        part = self.parts.get(node.id, node)
        if part is MISSING:
            raise LookupError(node.id)
        return part

    def _all(self, nodes: list[ast.expr], drop: bool) -> list[ast.expr]:
        filled: list[ast.expr] = []
        for node in nodes:
            try:
                value = self.visit(node)
            except LookupError:
                if not drop:
                    raise
                continue
            filled.extend(value if isinstance(value, list) else [value])
        return filled

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.func = self.visit(node.func)
        node.args = self._all(node.args, drop=True)
        kept = []
        for keyword in node.keywords:
            try:
                keyword.value = self.visit(keyword.value)
                kept.append(keyword)
            except LookupError:
                continue
        node.keywords = kept
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        node.elts = self._all(node.elts, drop=False)
        return node

    def visit_List(self, node: ast.List) -> ast.List:
        node.elts = self._all(node.elts, drop=False)
        return node


def expand(source: str, env: Mapping[str, Any], parts: tuple[str, ...] | None = None) -> str:
    """The JAX text for one torch call. `env` gives the values of the names in it. Raises `KeyError` (no row), `Refuse`, `TypeError`.

    With `parts`, the names that the result is unpacked into, it is the row's idiom, or "" where that declines.
    """
    call = ast.parse(source, mode="eval").body
    if isinstance(call, ast.Attribute):
        call = ast.Call(func=call, args=[], keywords=[])
    assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    dotted = ast.unparse(call.func)
    is_method = not dotted.startswith("torch.")
    row = methods()[call.func.attr] if is_method else ops()[dotted]
    bound = bind(row, call, call.func.value if is_method else None, env)
    if parts is not None:
        template = idioms()[row.name].to(replace(bound, names=parts))
        if not template:
            return ""
    else:
        template = row.to if isinstance(row.to, str) else row.to(bound)
    return _filled(template, bound)


def _filled(template: str, bound: Bound) -> str:
    parts: dict[str, Any] = {}

    def placeholder(match: re.Match[str]) -> str:
        star, name, default = match.groups()
        key = f"_part{len(parts)}"
        if name in RANDOMNESS:
            parts[key] = ast.parse(RANDOMNESS[name], mode="eval").body
        elif star:
            parts[key] = bound.values.get(name, [])
        elif bound.given(name):
            parts[key] = bound.node(name)
        else:
            parts[key] = MISSING if default is None else ast.parse(default, mode="eval").body
        return key

    tree = ast.parse(PLACEHOLDER.sub(placeholder, template).strip(), mode="eval")
    return ast.unparse(_Fill(parts).visit(tree))
