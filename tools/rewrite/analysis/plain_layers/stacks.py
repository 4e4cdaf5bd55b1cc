"""Lists of equal layers that one scan can go through: `nn.ModuleList([Block(config) for _ in range(n)])`, called one after the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.plain_layers.names import ParsedFile, dotted
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

MODULE_LIST = "torch.nn.ModuleList"
DICTIONARIES = frozenset({"dict", "ModuleDict"})


@dataclass(frozen=True)
class LayerStacks:
    """Where the lists are made, and the loops over them: (file, span of the call of `nn.ModuleList`) and (file, span of what a loop goes through)."""

    lists: frozenset[tuple[str, Span]] = frozenset()
    loops: frozenset[tuple[str, Span]] = frozenset()


@dataclass
class _Uses:
    """What a repository does with one attribute."""

    lists: list[tuple[str, Span]] = field(default_factory=list)
    loops: list[tuple[str, Span]] = field(default_factory=list)
    others: int = 0


def layer_stacks(
    files: Mapping[str, ParsedFile], span: Callable[[str, ast.AST], Span], observed: Callable[[str, Span], Observed | None]
) -> LayerStacks:
    """The lists that are only gone through, by layers that give what they take. `observed` knows what an expression of a file was."""
    uses: dict[str, _Uses] = {}
    words: set[str] = set()
    for path, file in files.items():
        _read(path, file, span, observed, uses)
        words.update(node.value for node in walk(file.tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    named = {part for word in words if re.fullmatch(r"[\w.]+", word) for part in word.split(".")}
    stacks = [one for name, one in uses.items() if one.lists and one.loops and not one.others and name not in named]
    return LayerStacks(frozenset(spot for one in stacks for spot in one.lists), frozenset(spot for one in stacks for spot in one.loops))


def _read(
    path: str,
    file: ParsedFile,
    span: Callable[[str, ast.AST], Span],
    observed: Callable[[str, Span], Observed | None],
    uses: dict[str, _Uses],
) -> None:
    understood: set[int] = set()
    for name, target, value in _bindings(file.tree):
        understood.add(id(target))
        one = uses.setdefault(name, _Uses())
        if (layer := _equal_layer(file, value)) is not None and not any(
            _is_shared(observed(path, span(path, argument))) for argument in (*layer.args, *(word.value for word in layer.keywords))
        ):
            one.lists.append((path, span(path, value)))
        else:
            one.others += 1
    for function in [node for node in walk(file.tree) if isinstance(node, ast.FunctionDef)]:
        for loop in [node for node in walk(function) if isinstance(node, ast.For) and isinstance(node.iter, ast.Attribute)]:
            if (call := _chained_call(loop, function)) is not None and isinstance(loop.iter, ast.Attribute):
                if _is_same(observed(path, span(path, call.args[0])), observed(path, span(path, call))):
                    understood.add(id(loop.iter))
                    uses.setdefault(loop.iter.attr, _Uses()).loops.append((path, span(path, loop.iter)))
    for node in walk(file.tree):
        if isinstance(node, ast.Attribute) and id(node) not in understood:
            uses.setdefault(node.attr, _Uses()).others += 1
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            uses.setdefault(node.name, _Uses()).others += 1


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.AST, ast.expr]]:
    """(name, where it stands, value) of attributes that are assigned, and of entries of dictionaries of modules that are written out."""
    for node in walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield target.attr, target, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and node.value is not None:
            yield node.target.attr, node.target, node.value
        elif isinstance(node, ast.Call) and _last(node.func) in DICTIONARIES:
            for word in node.keywords:
                if word.arg:
                    yield word.arg, word, word.value


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_shared(given: Observed | None) -> bool:
    """Whether what layers are given holds parameters, which are one for all of them in the list, and would be one for each in a stack."""
    return given is not None and any(kind.startswith(("module:", "parameter", "tensor")) for kind in given.kinds)


def _equal_layer(file: ParsedFile, value: ast.expr) -> ast.Call | None:
    """The call that makes each layer in `nn.ModuleList([Block(config) for _ in range(n)])`, where they do not depend on their number."""
    match value:
        case ast.Call(
            func=func,
            args=[
                ast.ListComp(
                    elt=ast.Call() as layer,
                    generators=[
                        ast.comprehension(
                            target=ast.Name(id=number), iter=ast.Call(func=ast.Name(id="range"), args=[_]), ifs=[], is_async=0
                        )
                    ],
                )
            ],
            keywords=[],
        ) if dotted(file, func) == MODULE_LIST:
            return None if any(isinstance(node, ast.Name) and node.id == number for node in ast.walk(layer)) else layer
    return None


def _chained_call(loop: ast.For, function: ast.FunctionDef) -> ast.Call | None:
    """The call in `for block in self.blocks: x = block(x, …)`, where nothing else depends on the layer."""
    match loop:
        case ast.For(
            target=ast.Name(id=layer),
            body=[
                ast.Assign(
                    targets=[ast.Name(id=result)], value=ast.Call(func=ast.Name(id=called), args=[ast.Name(id=first), *rest]) as call
                )
            ],
            orelse=[],
        ) if called == layer and first == result != layer:
            inside = {id(node) for node in ast.walk(loop)}
            others = [*rest, *(word.value for word in call.keywords)]
            fixed = not any(isinstance(node, ast.Name) and node.id in (layer, result) for other in others for node in ast.walk(other))
            spread = any(isinstance(other, ast.Starred) for other in rest) or any(word.arg is None for word in call.keywords)
            later = any(isinstance(node, ast.Name) and node.id == layer and id(node) not in inside for node in ast.walk(function))
            return call if fixed and not spread and not later else None
    return None


def _is_same(before: Observed | None, after: Observed | None) -> bool:
    """Whether a tensor was seen to keep its shape and dtype."""
    if before is None or after is None:
        return False
    tensors = set(before.kinds) == set(after.kinds) == {"tensor"}
    return tensors and bool(before.shapes) and before.shapes == after.shapes and before.dtypes == after.dtypes
