"""What code tells apart: the values that it compares a name with, and constructor arguments that take them."""

from __future__ import annotations

import argparse
import ast
import inspect
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.record.guessing.arguments import Call, by_position, text_of

SWITCH = ("True", "False")
OTHERS = ("'none'", "'other'")
"""Words, of which one that code does not ask for stands for all others."""
CONTAINERS = frozenset({"list", "tuple", "Iterable", "Sequence", "Collection"})
"""What a list is, by the names that code asks for."""


def distinctions(tree: ast.AST) -> dict[str, tuple[str, ...]]:
    """Last part of a name (`act` of `cfg.act`) → texts of the values that code distinguishes in it, in the order of the source.

    Constants that it is compared with or looked for among, keys of a dictionary that it selects from, and both values of a switch. A function such as
    `def exists(x): return x is not None` compares its argument with None. What is handed on under another name (`f(name=self.kind)`) takes what that
    name takes.
    """
    options: dict[str, dict[str, None]] = {}
    absence = _asking_absence(tree)
    tables = {name: _keys(node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign) for name in _targets(node)}
    for node in ast.walk(tree):
        absent = [(name, ["None"]) for name in _argument_of(node, absence)]
        for name, texts in (*absent, *_of(node, tables)):
            options.setdefault(name, {}).update(dict.fromkeys(texts))
    for name, source in dict.fromkeys(pair for node in ast.walk(tree) for pair in _handed_on(node)):
        if name in options and name != source:
            options.setdefault(source, {}).update(options[name])
    return {name: tuple(texts) for name, texts in options.items()}


def _handed_on(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names of parameters, and of what a call gives them by name."""
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        if keyword.arg and last(keyword.value):
            yield keyword.arg, last(keyword.value)


def _asking_absence(tree: ast.AST) -> set[str]:
    """The names of the functions that do nothing but compare their argument with None."""
    names = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(
                args=ast.arguments(args=[parameter]), body=[*_, ast.Return(value=ast.Compare(left=ast.Name(id=name), ops=[op]) as test)]
            ):
                if name == parameter.arg and isinstance(op, (ast.Is, ast.IsNot)) and _constants(test.comparators[0]) == ["None"]:
                    names.add(node.name)
    return names


def _argument_of(node: ast.AST, functions: Collection[str]) -> list[str]:
    """The last part of the name that a call of one of these functions is given; none where it is no name."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in functions:
            return [last(argument)] if last(argument) else []
    return []


def indexed(tree: ast.AST) -> dict[str, int]:
    """Names that code takes apart as a sequence → how many elements it takes: `sizes[1]`, `height, width = size`."""
    counts = dict[str, int]()
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(place))) if place >= 0:
                counts[name] = max(counts.get(name, 0), place + 1)
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=name)):
                counts[name] = max(counts.get(name, 0), len(parts))
    return counts


def _keys(table: ast.expr) -> list[str]:
    """Texts of the keys of a dictionary, written as `{…}` or `dict(…)`."""
    if isinstance(table, ast.Dict):
        return [text for key in table.keys if key is not None for text in _constants(key)]
    return [repr(keyword.arg) for keyword in table.keywords if keyword.arg] if isinstance(table, ast.Call) else []


def compares_ranks(tree: ast.AST) -> bool:
    """Whether code compares how many axes something has."""
    sides = (side for node in ast.walk(tree) if isinstance(node, ast.Compare) for side in (node.left, *node.comparators))
    return any(map(_is_rank, sides))


def _is_rank(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="ndim") | ast.Call(func=ast.Attribute(attr="dim" | "ndimension")):
            return True
        case ast.Call(func=ast.Name(id="len"), args=[ast.Attribute(attr="shape") | ast.Call(func=ast.Attribute(attr="size"))]):
            return True
    return False


def asked_containers(tree: ast.AST) -> set[str]:
    """The names of which code asks whether they are a list or a tuple, or can be gone through as these can."""
    names = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kinds]):
                if CONTAINERS & {last(part) for part in ast.walk(kinds)}:
                    names.add(name)
    return names


def conditions_asked(tree: ast.AST) -> set[str]:
    """The names that code takes for conditions as they are: `if scale:`, `x if not scale else y`."""
    tests = [node.test for node in ast.walk(tree) if isinstance(node, (ast.If, ast.IfExp, ast.While))]
    parts = [part for test in tests for part in (test.values if isinstance(test, ast.BoolOp) else [test])]
    inner = [part.operand if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) else part for part in parts]
    return {part.id for part in inner if isinstance(part, ast.Name)}


def _targets(node: ast.Assign) -> list[str]:
    match node.value:
        case ast.Dict() | ast.Call(func=ast.Name(id="dict")):
            return [last(target) for target in node.targets if last(target)]
    return []


def last(node: ast.AST) -> str:
    """The last part of a name, `cfg.act`, or the word by which code looks something up, `cfg["act"]` and `cfg.get("act")`; else ""."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return name
    return ""


def _of(node: ast.AST, tables: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            texts = [text for other in (left, *others) for text in _constants(other)]
            texts += _beyond(texts) if any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in ops) else []
            yield from ((last(other), texts) for other in (left, *others) if last(other) and texts)
        case ast.Subscript(value=table, slice=key) if last(key):
            if texts := [*(tables[last(table)] if last(table) in tables else _keys(table))]:
                yield last(key), texts
        case ast.Match(subject=subject, cases=cases) if last(subject):
            yield last(subject), [ast.unparse(case.pattern.value) for case in cases if isinstance(case.pattern, ast.MatchValue)]
        case ast.If(test=test) | ast.IfExp(test=test):
            yield from ((last(part), list(SWITCH)) for part in _switches(test) if last(part))


def _switches(test: ast.expr) -> Iterator[ast.expr]:
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _switches(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _switches(operand)
        case _:
            yield test


def _constants(node: ast.expr) -> list[str]:
    """Texts of the constants that this is, or holds."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [text for element in node.elts for text in _constants(element)]
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            return [ast.unparse(node)]
        case ast.Constant(value=str() | int() | float() | None):
            return [repr(node.value)]
    return []


def _beyond(texts: Sequence[str]) -> list[str]:
    """Of numbers that something is less or greater than: one below, a half and one above each."""
    numbers = [value for text in texts if isinstance(value := ast.literal_eval(text), (int, float)) and not isinstance(value, bool)]
    return [repr(other) for number in numbers for other in (number - 1, number + 0.5, number + 1)]


NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
"""What holds settings of any names."""


def other_constructions(
    call: Call, parameters: Sequence[inspect.Parameter], options: Mapping[str, Sequence[str]], evaluate: Callable[[str], Any]
) -> Iterator[str]:
    """Other argument lists of a constructor, with one value changed in each: an argument, or one of a settings object that is made there."""
    plain = [parameter for parameter in parameters if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]
    values = call.by_name([parameter.name for parameter in plain if parameter.kind is parameter.POSITIONAL_OR_KEYWORD])
    leading = by_position(plain)
    for parameter in plain:
        usual = values.get(parameter.name, repr(parameter.default))
        for text in _fitting(options.get(parameter.name, ()), usual):
            yield text_of({**values, parameter.name: text}, leading)
    for name, text in values.items():
        for other in other_settings(text, options, evaluate):
            yield text_of({**values, name: other}, leading)


def other_values(parameter: inspect.Parameter, options: Mapping[str, Sequence[str]]) -> list[str]:
    """Texts of the values of an optional argument, other than its default and of its kind, that code tells apart."""
    opposite = [str(not parameter.default)] if isinstance(parameter.default, bool) else []
    return opposite or _fitting(options.get(parameter.name, ()), repr(parameter.default))


def other_settings(text: str, options: Mapping[str, Sequence[str]], evaluate: Callable[[str], Any]) -> Iterator[str]:
    """Of `Config(width=4)` and `{"width": 4}`, the same with one setting changed that the code distinguishes; of settings inside of these too."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Dict):
        yield from _other_items(node, options, evaluate)
    if not isinstance(node, ast.Call):
        return
    match node.func:  # an object of a class that is known by its name: `type("Box", (), {"shape": (8,)})()`
        case ast.Call(func=ast.Name(id="type"), args=[ast.Constant(value=str(word)), *members]):
            for other in _fitting(options.get("__name__", ()), repr(word)):
                yield f"type({', '.join([other, *map(ast.unparse, members)])})()"
            return
    inner = Call.of(", ".join(ast.unparse(argument) for argument in (*node.args, *node.keywords)))
    constructor = evaluate(ast.unparse(node.func))
    if inner is None or not isinstance(constructor, type):
        return
    holds_any = constructor in NAMESPACES
    parameters = [] if holds_any else list(inspect.signature(constructor).parameters.values())
    declared = {parameter.name for parameter in parameters}
    for name in inner.by_name([]) if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters) or holds_any else ():
        if name not in declared:
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY))
    for arguments in other_constructions(inner, parameters, options, evaluate if holds_any else lambda text: None):
        yield f"{ast.unparse(node.func)}({arguments})"


def _other_items(node: ast.Dict, options: Mapping[str, Sequence[str]], evaluate: Callable[[str], Any]) -> Iterator[str]:
    for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            text = ast.unparse(value)
            for other in (*_fitting(options.get(key.value, ()), text), *other_settings(text, options, evaluate)):
                values = [*node.values[:index], ast.parse(other, mode="eval").body, *node.values[index + 1 :]]
                yield ast.unparse(ast.Dict(node.keys, values))


def _fitting(texts: Sequence[str], usual: str) -> list[str]:
    """Those of the texts that say another value than the usual one, and of its kind: both values of a switch fit a boolean alone, or None, and a
    whole number fits a float. A number that is a switch is zero, or it is not.
    """
    kind = _kind(usual)
    if kind in ("int", "float") and set(SWITCH) <= set(texts):
        texts = [*texts, "0" if ast.literal_eval(usual) else "1"]
    texts = [f"{text}.0" if kind == "float" and _kind(text) == "int" else text for text in texts]
    # A string that none of them is takes what is left over.
    texts = [*texts, *[text for text in OTHERS if text not in texts][:1]] if texts and kind == "str" else texts
    return [text for text in dict.fromkeys(texts) if text != usual and (_kind(text) == kind or "NoneType" in (kind, _kind(text)))]


def _kind(text: str) -> str:
    try:
        return type(ast.literal_eval(text)).__name__
    except (ValueError, SyntaxError):
        return "?"
