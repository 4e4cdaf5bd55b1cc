"""Binds the arguments of a call in source form to a torch signature written as text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import libcst as cst

DROPPED = frozenset(
    {"device", "layout", "pin_memory", "requires_grad", "memory_format", "generator", "non_blocking", "inplace", "antialias"}
)
"""Torch arguments without a meaning in JAX. They are dropped where a signature does not name them."""


# One row then serves both spellings; without this `x.sum(axis=1)` would be a hole.
SYNONYMS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
"""NumPy's argument names, which torch accepts too → torch's own."""


class BindError(Exception):
    """The call does not fit the signature (or cannot be matched in source form)."""


@dataclass(frozen=True)
class Signature:
    """A parsed signature: positional names in order, keyword-only names, defaults as text, and the
    names of `*args` and `**kwargs`.
    """

    names: tuple[str, ...]
    keyword_only: tuple[str, ...]
    defaults: Mapping[str, str]
    variadic: str = ""
    keywords: str = ""


@dataclass(frozen=True)
class Bound:
    """The arguments of a call by parameter name (`values`).

    `variadic`: the arguments of `*args` and `**kwargs`. `dropped`: arguments without a meaning in
    JAX.
    """

    values: Mapping[str, cst.BaseExpression]
    variadic: Mapping[str, Sequence[cst.Arg]] = field(default_factory=dict)
    dropped: Mapping[str, cst.BaseExpression] = field(default_factory=dict)
    sources: Mapping[str, cst.BaseExpression] = field(default_factory=dict)
    """The same arguments as they stood before rewriting (for positions); of a variadic one the first."""
    others: tuple[cst.BaseExpression, ...] = ()
    """All values of the variadic argument, as they stood before rewriting."""


@cache
def parse_signature(text: str) -> Signature:
    """Parse `"input, dim=-1, *, dtype=None"`. Raises `SyntaxError`."""
    tree = ast.parse(f"def f({text}): pass").body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = {
        a.arg: ast.unparse(d) for a, d in zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    }
    defaults |= {a.arg: ast.unparse(d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    return Signature(
        tuple(a.arg for a in positional),
        tuple(a.arg for a in arguments.kwonlyargs),
        defaults,
        arguments.vararg.arg if arguments.vararg else "",
        arguments.kwarg.arg if arguments.kwarg else "",
    )


def literal_argument(signature: Signature, call: ast.Call, name: str) -> Any:
    """The literal value of an argument or of its default; `...` where it is no literal or arguments
    are spread with stars.
    """
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return ...
    values = dict(zip(signature.names, call.args, strict=False)) | {keyword.arg: keyword.value for keyword in call.keywords}
    try:
        return ast.literal_eval(values[name] if name in values else signature.defaults.get(name, "..."))
    except (ValueError, SyntaxError, TypeError):
        return ...


def bind(signature: Signature, arguments: Sequence[cst.Arg], originals: Sequence[cst.Arg], receiver: cst.Arg | None = None) -> Bound:
    """Match arguments to names; `receiver` stands for the first one of a method call. Raises `BindError`."""
    pairs = list(zip(arguments, originals, strict=True))
    if receiver is not None:
        # The receiver takes the first name like any argument, so that one row serves function and
        # method.
        pairs.insert(0, (receiver, receiver))
    pairs = _named_numbers(signature, pairs, of_method=receiver is not None)
    values: dict[str, cst.BaseExpression] = {}
    sources: dict[str, cst.BaseExpression] = {}
    dropped: dict[str, cst.BaseExpression] = {}
    rest: list[cst.Arg] = []
    keywords: list[cst.Arg] = []
    others: list[cst.BaseExpression] = []
    position = 0
    for argument, original in pairs:
        name = argument.keyword.value if argument.keyword else ""
        if argument.star == "**" and signature.keywords:
            keywords.append(argument)
            continue
        # How many names a spread argument fills is known only at run time.
        if argument.star == "**" or (argument.star == "*" and not (signature.variadic and position >= len(signature.names))):
            raise BindError("arguments are spread with a star")
        if name:
            if name in signature.names or name in signature.keyword_only:
                pass
            # `x.view(size=(2, 3))`: the variadic argument passed by its name holds all values.
            elif name == signature.variadic:
                rest = [cst.Arg(argument.value)]
                continue
            elif SYNONYMS.get(name, "") in (*signature.names, *signature.keyword_only):
                name = SYNONYMS[name]
            elif name in DROPPED:
                dropped[name] = argument.value
                continue
            elif signature.keywords:
                keywords.append(argument)
                continue
            else:
                raise BindError(f"unknown argument {name!r}")
        elif position < len(signature.names):
            name = signature.names[position]
            position += 1
        elif signature.variadic:
            rest.append(argument)
            sources.setdefault(signature.variadic, original.value)
            others.append(original.value)
            continue
        else:
            raise BindError("too many arguments")
        if name in values:
            raise BindError(f"argument {name!r} given twice")
        values[name], sources[name] = argument.value, original.value
    _require(signature, values)
    variadic = {name: values_of for name, values_of in ((signature.variadic, rest), (signature.keywords, keywords)) if name}
    return Bound(values, variadic, dropped, sources, tuple(others))


def _named_numbers(signature: Signature, pairs: list[tuple[cst.Arg, cst.Arg]], *, of_method: bool) -> list[tuple[cst.Arg, cst.Arg]]:
    """The arguments with the names of the numbers that torch's old signatures have before what they scale: `x.addmm_(1, -2, a, b)`,
    `torch.addmm(beta, x, alpha, a, b)`, `x.addcmul_(value, a, b)`, `torch.add(x, alpha, y)`.

    https://github.com/pytorch/pytorch/blob/main/tools/autograd/deprecated.yaml
    """
    numbers = [name for name in signature.keyword_only if name in ("beta", "alpha", "value")]
    more = len(pairs) - len(signature.names)
    if not 0 < more <= len(numbers) or any(argument.keyword or argument.star for argument, _ in pairs):
        return pairs
    first, *others = signature.names
    own = numbers[:more]
    names = [*own[:1], first, *own[1:], *others] if numbers[0] == "beta" and not of_method else [first, *own, *others]
    return [(argument.with_changes(keyword=cst.Name(name)), original) for name, (argument, original) in zip(names, pairs, strict=True)]


def _require(signature: Signature, values: Mapping[str, cst.BaseExpression]) -> None:
    for name in (*signature.names, *signature.keyword_only):
        if name not in values and name not in signature.defaults:
            raise BindError(f"argument {name!r} is missing")
