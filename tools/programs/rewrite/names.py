"""Names that a piece of a program reads, binds and imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import libcst as cst

SELF = "self"
_PRINTER = cst.Module([])


@lru_cache(maxsize=16_384)
def code(node: cst.CSTNode) -> str:
    """The source text of a node, which never changes."""
    return _PRINTER.code_for_node(node)


def unparse(node: ast.AST) -> str:
    """The source text of Python's own syntax tree, with one pair of parentheses around a generator that is all a call is given."""
    return cst.parse_module(ast.unparse(node)).visit(_SingleParentheses()).code.rstrip("\n")


class _SingleParentheses(cst.CSTTransformer):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """`sum((x for x in xs))` → `sum(x for x in xs)`."""
        if len(updated_node.args) != 1 or not isinstance(generator := updated_node.args[0].value, cst.GeneratorExp):
            return updated_node
        bare = generator.with_changes(lpar=[], rpar=[])
        return updated_node.with_changes(args=[updated_node.args[0].with_changes(value=bare)])


def parse(node: cst.CSTNode) -> ast.AST:
    """The node as Python's own syntax tree."""
    import textwrap

    text = textwrap.dedent(code(node)) if not isinstance(node, cst.BaseExpression) else f"({code(node)})"
    return _SelfNames().visit(ast.parse(text))  # type: ignore[no-any-return]


class _SelfNames(ast.NodeTransformer):
    """An attribute of `self` is a name like any other: `self.model`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`self.model` as one name."""
        if isinstance(node.value, ast.Name) and node.value.id == SELF:
            return ast.copy_location(ast.Name(f"{SELF}.{node.attr}", node.ctx), node)
        return self.generic_visit(node)


def name_of(node: cst.CSTNode | None) -> str:
    """The name that an expression is, attributes of `self` included; "" for anything else."""
    if isinstance(node, cst.Name):
        return node.value
    return code(node) if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == SELF else ""


def chain_of(node: cst.CSTNode) -> str:
    """A name with attributes and words, `args.lr`, `self.args.lr` or `config["lr"]`, as text; "" for anything else."""
    inner = node
    while isinstance(inner, cst.Attribute) or _has_word(inner):
        inner = inner.value  # type: ignore[attr-defined]
    return ast.unparse(ast.parse(code(node), mode="eval")) if isinstance(inner, cst.Name) else ""


def _has_word(node: cst.CSTNode) -> bool:
    """Whether an expression is `x["word"]`."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)


def chains(node: cst.CSTNode, name: str) -> list[str]:
    """The longest chains of attributes and words that begin with a name, in order; the name itself where it stands alone."""
    texts: list[str] = []

    def walk(part: ast.AST) -> None:
        word = isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and isinstance(part.slice.value, str)
        text = ast.unparse(part) if word or isinstance(part, (ast.Attribute, ast.Name)) else ""
        if text == name or text.startswith((f"{name}.", f"{name}['")):
            # A method that is called is no attribute that holds a value.
            texts.append(text)
            return
        for child in ast.iter_child_nodes(part):
            walk(child)

    walk(parse(node))
    return list(dict.fromkeys(texts))


class Rename(cst.CSTTransformer):
    """Puts names in place of chains of attributes, by their text."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """The name of a chain."""
        return self._named(original_node, updated_node)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        """The name of a chain that ends in a word."""
        return self._named(original_node, updated_node)

    def _named(self, original: cst.BaseExpression, updated: cst.BaseExpression) -> cst.BaseExpression:
        name = self._names.get(chain_of(original))
        return updated if name is None else cst.Name(name)


def bound(node: cst.CSTNode) -> list[str]:
    """Names that a statement binds, in order: targets of assignments and loops, functions, imports."""
    return list(dict.fromkeys(_bound(parse(node))))


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    # Their targets are names of their own.
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def gives(node: cst.CSTNode) -> list[str]:
    """Names that a statement binds, and those of what it changes in place: `losses.append(loss)`, `losses["a"] = loss`, `x.mul_(2)`."""
    tree = parse(node)
    return list(dict.fromkeys([*_bound(tree), *_changed(tree)]))


CHANGES = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort", "update", "setdefault"})
"""Methods of lists and dictionaries that change them."""
FUNCTIONS = ("F", "torch", "nn")
"""Usual names of modules of torch: `F.relu_(x)` changes `x`."""


def _changed(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield from _root(node)
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        in_place = call.func.attr.endswith("_") and not call.func.attr.endswith("__")
        of = ast.unparse(call.func.value)
        if in_place and of.partition(".")[0] in FUNCTIONS:
            yield from [call.args[0].id] if call.args and isinstance(call.args[0], ast.Name) else []
        elif in_place or call.func.attr in CHANGES:
            yield from _root(call.func.value)
    for child in ast.iter_child_nodes(node):
        yield from _changed(child)


def _root(node: ast.AST) -> Iterator[str]:
    """The name of what an element, or `data`, is a part of."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    yield from [node.id] if isinstance(node, ast.Name) else []


def read(node: cst.CSTNode) -> list[str]:
    """Names that a statement or an expression reads, in order; those of comprehensions and lambdas only where they come from outside."""
    return list(dict.fromkeys(_read(parse(node), frozenset())))


def _read(node: ast.AST, inner: frozenset[str]) -> Iterator[str]:
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        inner = inner.union(*(_targets(generator.target) for generator in node.generators))
    elif isinstance(node, ast.Lambda):
        inner = inner.union(argument.arg for argument in [*node.args.args, *node.args.kwonlyargs])
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = inner.union((a.arg for a in [*node.args.args, *node.args.kwonlyargs]), *(frozenset(_bound(s)) for s in node.body))
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in inner:
        yield node.target.id
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in inner:
        yield node.id
    # The value of an assignment is read before its target is bound.
    for child in sorted(ast.iter_child_nodes(node), key=lambda one: getattr(one, "lineno", 0) if isinstance(one, ast.stmt) else 0):
        yield from _read(child, inner)


def exposed(node: cst.CSTNode) -> list[str]:
    """Names that a statement reads before it binds them itself, in order: of a loop, those of its first pass."""
    tree = parse(node)
    return list(dict.fromkeys(_exposed(tree.body if isinstance(tree, ast.Module) else [tree], set())))


def _exposed(statements: Sequence[ast.AST], known: set[str]) -> Iterator[str]:
    """Names that statements read before they are known; adds what they bind in any case to `known`."""
    for statement in statements:
        parts = [part for part in ("body", "orelse", "handlers", "finalbody") if isinstance(getattr(statement, part, None), list)]
        if not parts or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from (name for name in _read(statement, frozenset()) if name not in known)
            known |= set(_bound(statement))
            continue
        headers = [child for child in ast.iter_child_nodes(statement) if isinstance(child, (ast.expr, ast.withitem))]
        yield from (name for header in headers for name in _read(header, frozenset()) if name not in known)
        targets = {name for header in headers for name in _bound(header)}
        branches = []
        for part in parts:
            branch = {*known, *targets}
            yield from _exposed(getattr(statement, part), branch)
            branches.append(branch)
        # A loop that is read from afterwards has run.
        loop = isinstance(statement, (ast.For, ast.While, ast.With, ast.Try))
        known |= set.union(*branches) if loop else set.intersection(*branches)


def _targets(node: ast.AST) -> frozenset[str]:
    return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))


class FreeNames:
    """Names for new functions that nothing in a file has."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text)
        self.taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.taken |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
        self.taken |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}

    def pick(self, *wished: str) -> str:
        """The first of some names that is free, or the last one with a number; it is taken from then on."""
        numbered = (f"{wished[-1]}_{number}" for number in range(2, 1_000))
        name = next(name for name in (*wished, *numbered) if name not in self.taken)
        self.taken.add(name)
        return name


class Imports:
    """What the names of a file stand for, by its import statements."""

    def __init__(self, text: str) -> None:
        self.dotted: dict[str, str] = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.dotted[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.dotted |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}

    def of(self, node: cst.CSTNode) -> str:
        """The dotted name of something imported, by its name or as an attribute; "" for anything else."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.insert(0, node.attr.value)
            node = node.value
        if not isinstance(node, cst.Name) or node.value not in self.dotted:
            return ""
        return ".".join([self.dotted[node.value], *parts])


@lru_cache(maxsize=16)
def text_of(module: cst.Module) -> str:
    """The text of a file. Many passes ask for it, and libcst makes it anew each time."""
    return module.code


@lru_cache(maxsize=16)
def imports_of(module: cst.Module) -> Imports:
    """What the names of a file stand for."""
    return Imports(text_of(module))


def again(origin: dict[cst.CSTNode, cst.CSTNode], node: Any) -> Any:
    """A second node like one. `origin` says of each new node which one it was: that which the old one was."""
    new = node.deep_clone()
    pairs: list[tuple[Any, Any]] = [(node, new)]
    while pairs:
        old, one = pairs.pop()
        origin[one] = origin.get(old, old)
        pairs += zip(old.children, one.children, strict=True)
    return new
