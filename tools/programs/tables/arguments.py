"""The arguments of a call in a program's source: their texts, and their values where these are known."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from migrate_agent.tools.rewrite.tables.registry import UNKNOWN, Refuse


@dataclass(frozen=True)
class Argument:
    """Source text of an argument, and its value: a literal, or what a recording saw; else `UNKNOWN`."""

    text: str
    value: Any = UNKNOWN

    @property
    def known(self) -> bool:
        """Whether the value is known before the program runs."""
        return self.value is not UNKNOWN

    def is_default(self, value: Any) -> bool:
        """Whether the value is known to be this one."""
        return self.known and bool(self.value == value)

    def element(self, index: int) -> Argument:
        """One element of a tuple: of its text where it is written out, else by index."""
        node = ast.parse(self.text, mode="eval").body
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > index:
            return literal(source(node.elts[index], self.text), self.value[index] if self.known else UNKNOWN)
        operand = self.text if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({self.text})"
        return Argument(f"{operand}[{index}]", self.value[index] if self.known else UNKNOWN)


def literal(text: str, value: Any = UNKNOWN) -> Argument:
    """An argument of this text; where the text is a literal it says the value itself."""
    try:
        return Argument(text, ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return Argument(text, value)


Arguments = Mapping[str, Argument]


def bind(signature: str, call: str, values: Mapping[str, Any] | None = None) -> dict[str, Argument]:
    """Name → argument of a call, defaults included.

    `signature` and `call` are source texts: `"params, lr=1e-3"` and `"SGD(model.parameters(), lr=args.lr)"`. `values` are known values by name.
    Raises `Refuse` where the call spreads arguments with a star, or does not fit the signature.
    """
    node = ast.parse(call, mode="eval").body
    if not isinstance(node, ast.Call):
        raise Refuse(f"{call} is no call")
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(keyword.arg is None for keyword in node.keywords):
        raise Refuse("arguments that are spread with a star are not known before the program runs")
    parameters = parse_signature(signature)
    try:
        passed = parameters.bind(*(source(a, call) for a in node.args), **{str(k.arg): source(k.value, call) for k in node.keywords})
    except TypeError as error:
        raise Refuse(f"the call does not fit torch's signature: {error}") from None
    passed.apply_defaults()
    texts = {name: ", ".join(text) if isinstance(text, tuple) else text for name, text in passed.arguments.items()}
    return {name: literal(text, (values or {}).get(name, UNKNOWN)) for name, text in texts.items()}


def source(node: ast.expr, text: str) -> str:
    """The text of an expression as it was written."""
    return ast.get_source_segment(text, node) or ast.unparse(node)


def parse_signature(signature: str) -> inspect.Signature:
    """The parameters of a signature text; the default of each is its source text."""
    text = f"def f({signature}): ..."
    arguments = ast.parse(text).body[0]
    assert isinstance(arguments, ast.FunctionDef)
    spec = arguments.args
    defaults: list[ast.expr | None] = [None] * (len(spec.args) - len(spec.defaults)) + list(spec.defaults)
    kinds: list[tuple[ast.arg, ast.expr | None, Any]] = [
        (a, d, inspect.Parameter.POSITIONAL_OR_KEYWORD) for a, d in zip(spec.args, defaults, strict=True)
    ]
    kinds += [(spec.vararg, None, inspect.Parameter.VAR_POSITIONAL)] if spec.vararg else []
    kinds += [(a, d, inspect.Parameter.KEYWORD_ONLY) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
    empty = inspect.Parameter.empty
    return inspect.Signature([inspect.Parameter(a.arg, kind, default=source(d, text) if d else empty) for a, d, kind in kinds])
