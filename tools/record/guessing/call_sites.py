"""How the repository itself constructs a class: the arguments of calls, as far as they can be read without running anything."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Collection, Iterator, Mapping
from inspect import Parameter
from pathlib import Path
from types import MappingProxyType

from migrate_agent.tools.record.guessing.rows import parameter_texts
from migrate_agent.tools.record.guessing.settings import CONFIGS, command_line

MOST = 6
LARGEST = 500_000
"""Bytes of a file that is read."""
Bindings = Mapping[str, ast.expr]


def call_sites(files: Collection[Path], name: str, parameters: list[Parameter], known: Collection[str]) -> list[dict[str, str]]:
    """Parameter → text for each place that constructs the class, complete ones first; `known` are names that the unit's file has."""
    sites: list[dict[str, str]] = []
    for file in files:
        try:
            source = file.read_text(encoding="utf-8")
            tree = ast.parse(source) if name in source and len(source) < LARGEST else ast.Module([], [])
        except (OSError, ValueError, SyntaxError):
            continue
        options = {option: ast.parse(repr(value), mode="eval").body for option, value in command_line(tree).items()}
        for call, bindings in _calls(tree, name):
            site = _arguments(call, parameters, bindings, known, options)
            if site and site not in sites:
                sites.append(site)
    return sorted(sites, key=len, reverse=True)[:MOST]


def _calls(tree: ast.Module, name: str) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
    """Calls of the class, each with what the names around it are bound to."""

    def walk(node: ast.AST, bindings: dict[str, ast.expr]) -> Iterator[tuple[ast.Call, dict[str, ast.expr]]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            bindings = bindings | _defaults(node) | _assigned(node.body)
        elif isinstance(node, ast.Module):
            bindings = _assigned(node.body)
        if isinstance(node, ast.Call) and _last_name(node.func) == name:
            yield node, bindings
        for child in ast.iter_child_nodes(node):
            yield from walk(child, bindings)

    yield from walk(tree, {})


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr]:
    """What parameters are: their defaults, else what their names suggest."""
    plain = [*function.args.posonlyargs, *function.args.args]
    missing = len(plain) - len(function.args.defaults)
    pairs = [
        *zip(plain[missing:], function.args.defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    bindings = {}
    for argument in (*plain, *function.args.kwonlyargs):
        annotation = ast.unparse(argument.annotation) if argument.annotation else ""
        if argument.arg != "self" and (texts := parameter_texts(argument.arg, annotation)):
            bindings[argument.arg] = ast.parse(texts[0], mode="eval").body
    return bindings | {argument.arg: default for argument, default in pairs if default is not None}


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """Names that simple statements of a block bind once."""
    found: dict[str, ast.expr] = {}
    twice: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                twice |= {name} & found.keys()
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                twice |= {name} & found.keys()
                found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


class Inline(ast.NodeTransformer):
    """Puts the values of names in their places, and the defaults of command line `options` in those of `args.name`.

    `open`: a name was left without a value.
    """

    def __init__(self, bindings: Bindings, known: Collection[str], depth: int = 6, options: Bindings = MappingProxyType({})) -> None:
        self.bindings, self.known, self.depth, self.open, self.options = bindings, known, depth, False, options

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._inlined(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._inlined(node.attr, node)
        if isinstance(node.value, ast.Name) and node.attr in self.options and CONFIGS.fullmatch(node.value.id):
            return self.options[node.attr]
        self.generic_visit(node)
        return node

    def _inlined(self, name: str, node: ast.expr) -> ast.expr:
        if name not in self.bindings or not self.depth:
            self.open = (
                self.open or not self.depth or isinstance(node, ast.Attribute) or not (name in self.known or hasattr(builtins, name))
            )
            return node
        without = {other: value for other, value in self.bindings.items() if other != name}
        inner = Inline(without, self.known, self.depth - 1, self.options)
        value: ast.expr = inner.visit(copy.deepcopy(self.bindings[name]))
        self.open = self.open or inner.open
        return value


def _arguments(
    call: ast.Call, parameters: list[Parameter], bindings: Bindings, known: Collection[str], options: Bindings
) -> dict[str, str]:
    """Parameter → text of those arguments whose names can all be resolved."""
    plain = [parameter.name for parameter in parameters if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    starred = next((at for at, arg in enumerate(call.args) if isinstance(arg, ast.Starred)), len(call.args))
    given = dict(zip(plain, call.args[:starred], strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in {p.name for p in parameters}}
    texts = {}
    for name, node in given.items():
        inline = Inline(bindings, known, options=options)
        value = inline.visit(copy.deepcopy(node))
        if not inline.open and name:
            texts[name] = ast.unparse(value)
    return texts
