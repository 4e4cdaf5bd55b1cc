"""Modules that a constructor is handed and that its class calls with several arguments: those of the repository that take as many."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from migrate_agent.tools.record.guessing.choices import nodes_of
from migrate_agent.tools.record.guessing.configs import is_any
from migrate_agent.tools.record.guessing.reads import Holder, aliases
from migrate_agent.tools.record.guessing.trials.trial import parameters, required


class Use(NamedTuple):
    """With how many arguments a part is called, and into how many values its result is taken apart; 0 where into none."""

    arguments: int
    results: int = 0
    keywords: tuple[str, ...] = ()
    """The names of those that are given by name."""
    listed: bool = False
    """Whether the parameter is a list of such parts, which a loop calls."""


class Forward(NamedTuple):
    """What the call of a class takes."""

    least: int
    most: int
    names: frozenset[str]

    def takes(self, use: Use) -> bool:
        """Whether it needs as many arguments, or takes as many without those that it may do without, and has all that are named."""
        counts = self.least <= use.arguments <= self.most and (self.least == use.arguments or self.least > 1)
        # Names say more than counts.
        named = set(use.keywords) <= self.names and self.least <= use.arguments <= self.most
        return named if use.keywords else counts


def use_of(cls: Any, name: str) -> Use | None:
    """How a class calls a parameter of its constructor that it keeps, `self.net(x, c)`, or the parts in it; None where it does not, or it is not known."""
    names = [other for other, steps in aliases(Holder(cls, name)).items() if steps == ()]
    lists = [*names, *_wrapped(cls, names)]
    parts = list(_loop_names(cls, lists))
    calls: list[Use] = []
    results = {
        id(node.value): len(node.targets[0].elts)
        for node in nodes_of(cls)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    }
    for node in nodes_of(cls):
        match node:
            case ast.Call(func=function, args=args, keywords=keywords):
                alone = isinstance(function, ast.Attribute) and is_any(function, names)
                listed = not alone and (
                    (isinstance(function, ast.Name) and function.id in parts)
                    or (isinstance(function, ast.Subscript) and is_any(function.value, lists))
                )
                if (alone or listed) and not any(isinstance(argument, ast.Starred) for argument in args):
                    given = [keyword.arg for keyword in keywords]
                    if None not in given:
                        named = tuple(keyword for keyword in given if keyword)
                        calls.append(Use(len(args) + len(named), results.get(id(node), 0), named, listed))
    return max(calls, default=None)


def _wrapped(cls: Any, names: Collection[str]) -> Iterator[str]:
    """Attributes that hold `nn.ModuleList(parts)`, also where this is one side of a condition."""
    for node in nodes_of(cls):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=attribute)], value=value):
                value = value.body if isinstance(value, ast.IfExp) else value
                if isinstance(value, ast.Call) and len(value.args) == 1 and is_any(value.args[0], names):
                    if isinstance(value.func, ast.Name | ast.Attribute) and ast.unparse(value.func).endswith("ModuleList"):
                        yield attribute


def _loop_names(cls: Any, lists: Collection[str]) -> Iterator[str]:
    """Names that loops bind to the items of lists: `for layer in layers`, `for i, layer in enumerate(layers)`, `for a, b in zip(layers, others)`."""
    for node in nodes_of(cls):
        match node:
            case ast.For(target=ast.Name(id=name), iter=iterated) if is_any(iterated, lists):
                yield name
            case ast.For(target=ast.Tuple(elts=targets), iter=ast.Call(func=ast.Name(id="zip" | "enumerate" as function), args=args)):
                sources = [None, *args] if function == "enumerate" else args
                for target, source in zip(targets, sources, strict=False):
                    if isinstance(target, ast.Name) and source is not None and is_any(source, lists):
                        yield target.id


def fits(source: str, name: str, use: Use) -> bool:
    """Whether a class in a text has a call that takes what a part is called with."""
    return any(forward.takes(use) for forward in _forwards(source).get(name, ()))


@lru_cache(maxsize=64)
def _forwards(source: str) -> dict[str, list[Forward]]:
    """Class → what its `forward` takes."""
    try:
        classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    except (SyntaxError, ValueError):
        return {}
    return {
        cls.name: [_forward(node) for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "forward"] for cls in classes
    }


def _forward(function: ast.FunctionDef) -> Forward:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][1:]
    most = len(positional)
    names = frozenset(one.arg for one in (*positional, *arguments.kwonlyargs))
    return Forward(most - len(arguments.defaults), most + len(arguments.kwonlyargs), names)


def results_of(cls: Any) -> set[int]:
    """Into how many values the results of a class's call fall, by what it returns."""
    returns = [node.value for node in nodes_of(vars(cls).get("forward")) if isinstance(node, ast.Return)]
    return {len(value.elts) if isinstance(value, ast.Tuple) else 0 for value in returns}


TORCH = re.compile(r"torch\.nn\.(functional\.)?(\w+)(\(?)")


def without_options(texts: tuple[Any, ...], use: Use) -> Iterator[Any]:
    """The texts without those of torch whose second argument is an option, or that take no second one."""
    import torch

    for text in texts:
        match = TORCH.match(text) if isinstance(text, str) else None
        layer = getattr(torch.nn, match[2], None) if match is not None and match[3] and not match[1] else None
        taken = len(required(parameters(layer.forward))) - 1 if layer is not None else 0
        if match is None or taken > 1:
            yield text
