"""Arguments of other kinds, where code asks of which kind an argument is. Used inside the sandbox."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence

from migrate_agent.tools.record.guessing.distinctions import last

TEXTS: Mapping[str, tuple[str, ...]] = {
    "int": ("2", "4"),
    "float": ("0.5",),
    "Number": ("0.5", "2"),
    "Real": ("0.5",),
    "bool": ("True",),
    "Module": ("torch.nn.Tanh()",),
}
"""Kind that code asks for → texts of that kind."""
OF_ANOTHER: Mapping[str, tuple[str, ...]] = {"str": ("torch.nn.Tanh", "torch.tanh", "torch.nn.Tanh()")}
"""Kind that an argument has and that code asks for → texts that are of none."""


def asked_kinds(tree: ast.AST) -> dict[str, tuple[str, ...]]:
    """Last part of a name → last parts of the classes of which code asks whether it is an instance, and `callable`."""
    kinds: dict[str, dict[str, None]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[asked, classes]) if last(asked):
                parts = classes.elts if isinstance(classes, ast.Tuple) else [classes]
                kinds.setdefault(last(asked), {}).update(dict.fromkeys(filter(None, map(last, parts))))
            case ast.Call(func=ast.Name(id="callable"), args=[asked]) if last(asked):
                kinds.setdefault(last(asked), {})["callable"] = None
    return {name: tuple(inside) for name, inside in kinds.items()}


def of_other_kinds(
    values: Mapping[str, str], parameters: Sequence[inspect.Parameter], kinds: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, str]]:
    """Other argument lists, each with one argument of another kind that code asks for: a number in the place of an object, a pair in that of a number,
    a class in that of a name. `values` are the texts of the arguments by name; what is left out has its default."""
    for parameter in parameters:
        usual = values.get(parameter.name, repr(parameter.default))
        for text in dict.fromkeys(_texts(usual, kinds.get(parameter.name, ()))):
            if text != usual:
                yield {**values, parameter.name: text}


def in_other_brackets(values: Mapping[str, str], kinds: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Other argument lists where code asks for a list or a tuple, each with one list of lists or tuples that holds the other ones: `[(3,)]`, `[[3]]`."""
    if not {"list", "tuple"} & {kind for row in kinds.values() for kind in row}:
        return
    for name, text in values.items():
        node = ast.parse(text, mode="eval").body
        if isinstance(node, (ast.List, ast.Tuple)) and any(isinstance(item, (ast.List, ast.Tuple)) for item in node.elts):
            items = [_other_bracket(item) if isinstance(item, (ast.List, ast.Tuple)) else item for item in node.elts]
            yield {**values, name: ast.unparse(type(node)(items, ast.Load()))}


def _other_bracket(node: ast.List | ast.Tuple) -> ast.expr:
    return (ast.Tuple if isinstance(node, ast.List) else ast.List)(node.elts, ast.Load())


def _texts(usual: str, asked: Sequence[str]) -> Iterator[str]:
    """Texts of the kinds that are asked for, and of none of them."""
    own = _kind(usual)
    if own in asked:
        yield from OF_ANOTHER.get(own, ())
        if own == "int":
            yield f"({usual}, {usual})"
        if own in ("list", "tuple"):
            yield from _first(usual)
        return
    for kind in asked:
        yield from TEXTS.get(kind, ())
    if own == "?" and asked and not {"Tensor", "ndarray"} & set(asked):
        # An object: where code asks for its class it takes something plainer too, such as how large one to make.
        yield from ("4", "8")
    if {"list", "tuple"} & set(asked) and own not in ("NoneType", "?"):
        yield f"[{usual}]"
    if "callable" in asked:
        yield "torch.nn.Tanh()"


def _first(usual: str) -> Iterator[str]:
    node = ast.parse(usual, mode="eval").body
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        yield ast.unparse(node.elts[0])


def _kind(text: str) -> str:
    try:
        return type(ast.literal_eval(text)).__name__
    except (ValueError, SyntaxError):
        return "?"
