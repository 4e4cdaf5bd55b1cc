"""Which names a piece of source defines at its top level, and which global names it needs."""

from __future__ import annotations

import ast
import re
import symtable
import sys
from collections.abc import Iterable, Iterator, Mapping, Set


def defined_names(statement: ast.stmt, *, as_script: bool = False) -> list[str]:
    """Names that a top-level statement binds (or changes in place, as `TABLE["x"] = y` does); those of the main block for a script alone."""
    if not as_script and isinstance(statement, ast.If) and asks_for_main(statement):
        return [name for other in statement.orelse for name in defined_names(other)]
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    names: dict[str, None] = {}
    for node in _own_nodes(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= dict.fromkeys(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        # A statement that fills a table belongs to the table's definition, so that it counts as
        # one.
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names[node.value.id] = None
    return list(names)


def is_main(statement: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__"` without an `else`: no import runs anything of it."""
    return asks_for_main(statement) and not (isinstance(statement, ast.If) and statement.orelse)


def asks_for_main(statement: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__"`, of which an import runs the `else` at most."""
    match statement:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            return {ast.unparse(left), ast.unparse(right)} == {"__name__", "'__main__'"}
    return False


def registered_with(statement: ast.stmt, objects: Set[str], registrars: Mapping[str, Set[str]]) -> frozenset[str]:
    """The top-level names that a statement changes by being run: `@TABLE.register("x") def f`,
    `TABLE.add(f)`, `@register def f`, `for c in rows: TABLE.append(c)`.

    `objects` are the names that the file assigns; `registrars` are its functions that change such
    objects, with these.
    """
    calls: list[ast.expr] = []
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        calls = list(statement.decorator_list)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        calls = [statement.value]
    elif isinstance(statement, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
        calls = list(_registrations_inside(statement))
    names: set[str] = set()
    for call in calls:
        function = call.func if isinstance(call, ast.Call) else call
        root = function
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        if not isinstance(root, ast.Name):
            continue
        if root is not function and root.id in objects:
            names.add(root.id)
        elif root is function:
            names |= registrars.get(root.id, frozenset())
    return frozenset(names)


def _registrations_inside(block: ast.stmt) -> Iterator[ast.expr]:
    """Decorators, and calls that are statements and put something into an object, in a block that a file runs at import."""
    # Of other calls it is not known that they change what they belong to: `for x in data: model.train()` is no part of a model.
    for node in _own_nodes(block):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from node.decorator_list
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr)) as call) if attr in MUTATING:
                yield call
            case ast.Expr(value=ast.Call(func=ast.Name()) as call):
                yield call


def names_in_bodies(text: str) -> frozenset[str]:
    """The global names that statements read beside their decorators: what they use, and not where they are entered."""
    tree = ast.parse(text)
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            statement.decorator_list = []
    return frozenset(global_names(ast.unparse(tree)))


MUTATING = frozenset("append add update setdefault extend insert".split())


def registrars(body: Iterable[ast.stmt], objects: Set[str]) -> dict[str, Set[str]]:
    """Functions of a file that put something into top-level tables, with the names of these."""
    tables: dict[str, Set[str]] = {}
    for function in body:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and (changed := set(_changed_names(function)) & objects):
            tables[function.name] = changed
    return tables


def _changed_names(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Subscript(ctx=ast.Store(), value=ast.Name(id=name)):
                yield name
            case ast.Call(func=ast.Attribute(attr=attr, value=ast.Name(id=name))) if attr in MUTATING:
                yield name


def _own_nodes(node: ast.AST) -> list[ast.AST]:
    """The node and its descendants, not going into functions, classes, lambdas or comprehensions."""
    result = [node]
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            result.append(child)
        elif not isinstance(child, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            result.extend(_own_nodes(child))
    return result


def global_names(source: str, imports_only: bool = False) -> frozenset[str]:
    """Global names that the source reads; with `imports_only`, only those read while it is imported
    (not inside function bodies).
    """
    table = symtable.symtable(source, "<source>", "exec")
    names: set[str] = set()
    _collect(table, names, imports_only)
    if sys.version_info >= (3, 12) and "for" in source:
        names -= _of_comprehensions(source, table, imports_only)
    if _rebinds(table):
        names |= {name for node in _classes(ast.parse(source), imports_only) for name in _read_before_bound(node)}
    # `symtable` does not look into strings; parsing them is slow, so that a regular expression asks
    # first.
    if not imports_only and STRING_ANNOTATION.search(source):
        names |= _string_annotations(source)
    return frozenset(names)


def _collect(table: symtable.SymbolTable, names: set[str], imports_only: bool) -> None:
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (top or symbol.is_global()):
            names.add(symbol.get_name())
    for child in table.get_children():
        # Comprehensions are functions to `symtable` but run at once, unlike real functions.
        if imports_only and child.get_type() == "function" and child.get_name() not in ("listcomp", "genexpr", "setcomp", "dictcomp"):
            continue
        _collect(child, names, imports_only)


def _of_comprehensions(source: str, table: symtable.SymbolTable, imports_only: bool) -> set[str]:
    """Variables of comprehensions that nothing else reads as global names. Since Python 3.12 the top level has them among its symbols."""
    tree = ast.parse(source)
    every = [node for node in ast.walk(tree) if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp))]
    variables = {part.id for node in every for one in node.generators for part in ast.walk(one.target) if isinstance(part, ast.Name)}
    inside: set[str] = set()
    for child in table.get_children():
        if not (imports_only and child.get_type() == "function"):
            _collect(child, inside, imports_only)
    return variables - inside - set(_read_outside(tree, variables))


def _read_outside(node: ast.AST, variables: Set[str]) -> Iterator[str]:
    """Those of the names that code outside of functions reads, other than in a comprehension that binds them."""
    if isinstance(node, ast.Name) and node.id in variables and isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        targets = {part.id for one in node.generators for part in ast.walk(one.target) if isinstance(part, ast.Name)}
        yield from _read_outside(node.generators[0].iter, variables)
        variables = variables - targets
    body = node.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) else []
    inside = {id(part) for part in (body if isinstance(body, list) else [body])}
    for child in ast.iter_child_nodes(node):
        if id(child) not in inside:
            yield from _read_outside(child, variables)


def _rebinds(table: symtable.SymbolTable) -> bool:
    """Whether the body of a class reads a name that it also binds: before it does, the name is the global one (`WIDTH = WIDTH`)."""
    own = table.get_type() == "class" and any(symbol.is_referenced() and symbol.is_local() for symbol in table.get_symbols())
    return own or any(_rebinds(child) for child in table.get_children())


def _classes(node: ast.AST, imports_only: bool) -> Iterator[ast.ClassDef]:
    if isinstance(node, ast.ClassDef):
        yield node
    if not (imports_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        for child in ast.iter_child_nodes(node):
            yield from _classes(child, imports_only)


def _read_before_bound(node: ast.ClassDef) -> set[str]:
    """The names that the body of a class binds, and reads before."""
    bound: set[str] = set()
    early: set[str] = set()
    for statement in node.body:
        now = list(_running_now(statement))
        early |= {name.id for name in now if isinstance(name.ctx, ast.Load)} - bound
        bound |= {name.id for name in now if isinstance(name.ctx, ast.Store)}
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(statement.name)
    return early & bound


def _running_now(node: ast.AST) -> Iterator[ast.Name]:
    """The names in what a class body runs at once: not what has a scope of its own, the bodies of functions and of classes in it."""
    match node:
        case ast.Name():
            yield node
        case ast.Lambda(args=arguments) | ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            for part in (*arguments.defaults, *filter(None, arguments.kw_defaults), *getattr(node, "decorator_list", ())):
                yield from _running_now(part)
        case ast.ClassDef(bases=bases, keywords=keywords, decorator_list=decorators):
            for part in (*bases, *keywords, *decorators):
                yield from _running_now(part)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from _running_now(node.generators[0].iter)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _running_now(child)


STRING_ANNOTATION = re.compile(r"(?::|->)[^=;{}]*?[\"']")
"""Where none of this occurs there is no annotation in quotes; where it does, there may be one."""


def _string_annotations(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if isinstance(annotation, ast.expr):
            for text in _forward_references(annotation):
                try:
                    names |= {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
                except SyntaxError:
                    continue
    return names


GENERIC = frozenset("Optional List Dict Tuple Union Type Callable Sequence Iterable Iterator Mapping Set list dict tuple type set".split())
"""Types whose parameters are types, so that a string among them names one; in `Literal["a"]` or
`Float["b n"]` it does not.
"""


def _forward_references(node: ast.expr) -> list[str]:
    """The texts of an annotation that name types."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Subscript):
        name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        return _forward_references(node.slice) if name in GENERIC else []
    return [text for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr) for text in _forward_references(child)]


def attribute_chains(source: str, root: str) -> set[tuple[str, ...]]:
    """What is read from a global name: `layers.conv.Block` gives `("conv", "Block")` for root `layers`, `getattr(layers, name)` and
    `layers.__dict__` give `()`.
    """
    nodes = list(ast.walk(ast.parse(source)))
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    return {chain for node in nodes if id(node) not in inner and (chain := _chain(node, root)) is not None}


def _chain(node: ast.AST, root: str) -> tuple[str, ...] | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names = [] if node.attr == "__dict__" else [node.attr, *names]
        node = node.value
    return tuple(names) if isinstance(node, ast.Name) and node.id == root and isinstance(node.ctx, ast.Load) else None


def import_lines(text: str, names: set[str]) -> list[str]:
    """The import statements of a text, reduced to some of the names they bind."""
    lines = []
    for statement in ast.parse(text.strip()).body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        statement.names = [a for a in statement.names if (a.asname or a.name.partition(".")[0]) in names or a.name == "*"]
        if statement.names:
            lines.append(ast.unparse(statement))
    return lines


def import_of(name: str, dotted: str) -> str:
    """The import statement that binds a name to what a dotted name stands for."""
    module, _, last = dotted.rpartition(".")
    return f"from {module} import {last}" + ("" if last == name else f" as {name}")
