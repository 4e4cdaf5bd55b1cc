"""Modules that a constructor is handed and that its class calls with several arguments: those of the repository that take as many."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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


def use_of(cls: Any, name: str) -> Use | None:
    """How a class calls a parameter of its constructor that it keeps, `self.net(x, c)`; None where it does not, or it is not known."""
    names = [other for other, steps in aliases(Holder(cls, name)).items() if steps == ()]
    calls: list[Use] = []
    results = {
        id(node.value): len(node.targets[0].elts)
        for node in nodes_of(cls)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
    }
    for node in nodes_of(cls):
        match node:
            case ast.Call(func=ast.Attribute() as function, args=args, keywords=[]) if is_any(function, names):
                if not any(isinstance(argument, ast.Starred) for argument in args):
                    calls.append(Use(len(args), results.get(id(node), 0)))
    return max(calls, default=None)


def fits(source: str, name: str, use: Use) -> bool:
    """Whether a class in a text has a call that needs as many arguments, or takes as many without those that it may do without."""
    return any(least <= use.arguments <= most and (least == use.arguments or least > 1) for least, most in _forwards(source).get(name, ()))


@lru_cache(maxsize=64)
def _forwards(source: str) -> dict[str, list[tuple[int, int]]]:
    """Class → how many arguments its `forward` needs, and may take."""
    try:
        classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    except (SyntaxError, ValueError):
        return {}
    return {
        cls.name: [_counts(node) for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "forward"] for cls in classes
    }


def _counts(function: ast.FunctionDef) -> tuple[int, int]:
    most = len(function.args.posonlyargs) + len(function.args.args) - 1
    return most - len(function.args.defaults), most


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
