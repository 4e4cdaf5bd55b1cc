"""Pieces of code in which a repository shows how its modules are built and called: read here, run in the sandbox only.

They come from docstrings, `__main__` blocks, tests and the fenced blocks of text files. Of each, only what builds and calls a unit is kept, with
what that needs: no training loop, download or file that the piece goes on to use.
"""

from __future__ import annotations

import ast
import doctest
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate_agent.tools.scan.walk import SourceError, read_source
from migrate_agent.tools.types import Inventory, SourceFile

TEXTS = ("*.md", "*.rst", "docs/**/*.md", "docs/**/*.rst", "*.dist-info/METADATA", "*.egg-info/PKG-INFO", "PKG-INFO")
FENCED = re.compile(r"^```\s*(?:python|py|python3)?\s*\n(.*?)^```", re.M | re.S | re.I)
INDENTED = re.compile(r"(?:Examples?|Usage)\s*:{1,2}\s*\n((?:\s*\n|[ \t]+.*\n?)+)")
MOST = 40
"""Pieces of one repository."""
LARGE = 512
"""Sizes from which on a piece is first tried with an eighth of its large sizes."""
DEEP = re.compile(r"(n_?|num_?)?(depth|layers?|blocks?|.*_depth|.*_layers)")


@dataclass(frozen=True)
class Snippet:
    """Statements to run, over the names of the file `module` ("" for none but `torch`). `source` says where they stand."""

    source: str
    module: str
    code: str
    number: int = 0
    """The same for a piece with its own sizes and with smaller ones."""


def snippets(inventory: Inventory, units: Collection[str]) -> tuple[Snippet, ...]:
    """The pieces that build one of these units (ids), in the order of files; each also with smaller sizes, which come first."""
    names = {unit.name.rpartition(".")[2] for unit in inventory.units if unit.id in units}
    methods = _methods(inventory, units)
    kept: dict[Snippet, None] = {}
    for number, piece in enumerate((*_of_files(inventory), *_of_texts(inventory.root))):
        for code in _variants(piece.code, names, methods):
            kept[Snippet(piece.source, piece.module, code, number)] = None
    return tuple(kept)[:MOST]


def _methods(inventory: Inventory, units: Collection[str]) -> set[str]:
    """The names of the public methods of these units."""
    chosen = [unit for unit in inventory.units if unit.id in units and unit.kind == "module"]
    trees = {path: ast.parse((inventory.root / path).read_text(encoding="utf-8-sig")) for path in {unit.source for unit in chosen}}
    classes = {(path, node.name): node for path, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    bodies = [classes[key].body for unit in chosen if (key := (unit.source, unit.name.rpartition(".")[2])) in classes]
    return {item.name for body in bodies for item in body if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")}


def _variants(code: str, names: Collection[str], methods: Collection[str]) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError:
        return
    statements = needed_statements(tree.body, names, methods)
    if statements:
        smaller = ast.unparse(Smaller().visit(ast.parse(ast.unparse(ast.Module(statements, [])))))
        yield from dict.fromkeys((smaller, ast.unparse(ast.Module(statements, []))))


def _of_files(inventory: Inventory) -> Iterator[Snippet]:
    for file in inventory.files:
        if file.error or file.adopted:
            continue
        try:
            tree = ast.parse(read_source(inventory.root / file.path))
        except (SourceError, SyntaxError, OSError):
            continue
        yield from _of_tree(file, tree)


def _of_tree(file: SourceFile, tree: ast.Module) -> Iterator[Snippet]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield from (Snippet(file.path, file.module, code) for code in documented(text))
    for statement in tree.body:
        if isinstance(statement, ast.If) and "__main__" in ast.unparse(statement.test):
            yield Snippet(file.path, file.module, ast.unparse(ast.Module(statement.body, [])))
    if re.search(r"(^|/)(tests?/|test_|\w+_test\.py$)", file.path):
        for function in _tests(tree):
            yield Snippet(
                f"{file.path}:{function.name}", "", ast.unparse(ast.Module([*tree.body, *_given(function, tree), *function.body], []))
            )


def documented(text: str) -> Iterator[str]:
    """The code that a docstring shows: `>>>` lines, fenced blocks, blocks after `Example::` and `Usage:`."""
    if ">>>" in text:
        try:
            yield "".join(example.source for example in doctest.DocTestParser().get_examples(text))
        except ValueError:
            return
    else:
        yield from FENCED.findall(text)
        yield from (textwrap.dedent(block) for block in INDENTED.findall(text + "\n") if "```" not in block)


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield node


def _given(test: ast.FunctionDef, tree: ast.Module) -> Iterator[ast.stmt]:
    """Assignments of a test's parameters: the first values of `parametrize`, and what fixtures return."""
    for decorator in test.decorator_list:
        match decorator:
            case ast.Call(
                func=ast.Attribute(attr="parametrize"),
                args=[ast.Constant(value=str(names)), ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_])],
            ):
                yield ast.parse(f"{names} = {ast.unparse(first)}").body[0]
    wanted = {argument.arg for argument in test.args.args}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in wanted and any("fixture" in ast.unparse(d) for d in node.decorator_list):
            yield from (statement for statement in node.body if not isinstance(statement, ast.Return | ast.Expr))
            for part in node.body:
                if isinstance(part, ast.Return) and part.value is not None:
                    yield ast.Assign([ast.Name(node.name, ast.Store())], part.value, lineno=1)


def _of_texts(root: Path) -> Iterator[Snippet]:
    """The fenced blocks of each text file, one after the other as one piece: a later block goes on with names of an earlier one."""
    for path in dict.fromkeys(path for pattern in TEXTS for path in sorted(root.glob(pattern))):
        blocks = FENCED.findall(path.read_text(encoding="utf-8-sig", errors="replace"))
        codes = [code for block in blocks for code in [(">>>" in block and "".join(documented(block))) or block] if _parses(code)]
        for at, code in enumerate(codes):
            imports = [line for earlier in codes[:at] for line in earlier.splitlines() if re.match(r"(from \S+ )?import ", line)]
            yield Snippet(path.relative_to(root).as_posix(), "", "\n".join([*(line for line in imports if _parses(line)), code]))


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


SIMPLE = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Import | ast.ImportFrom | ast.With | ast.FunctionDef | ast.ClassDef


def needed_statements(body: Sequence[ast.stmt], names: Collection[str], methods: Collection[str] = ()) -> list[ast.stmt]:
    """The statements that build one of the named classes or call what was built, or one of these methods of it, and those that bind what these
    read; else none."""
    models: set[str] = set()
    wanted: set[int] = set()
    # A test asserts what it calls.
    body = [ast.copy_location(ast.Expr(each.test), each) if isinstance(each, ast.Assert) else each for each in body]
    for at, statement in enumerate(body):
        plain = isinstance(statement, SIMPLE) and not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        calls = [_called(node, methods) for node in ast.walk(statement) if isinstance(node, ast.Call)] if plain else []
        if set(calls) & set(names):
            models |= _bound(statement)
            wanted.add(at)
        elif set(calls) & models:
            wanted.add(at)
    read = {name for at in wanted for name in _read(body[at])}
    for at in reversed(range(len(body))):
        if at not in wanted and isinstance(body[at], SIMPLE) and _bound(body[at]) & read:
            wanted.add(at)
            read |= set(_read(body[at]))
    return [body[at] for at in sorted(wanted)] if models or wanted else []


def _called(call: ast.Call, methods: Collection[str]) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name), attr="forward"):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr=method) if method in methods:
            return name
        case ast.Attribute(attr=name):
            return name
    return ""


def _bound(statement: ast.stmt) -> set[str]:
    """Names that a statement binds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _read(statement: ast.stmt) -> Iterator[str]:
    return (node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


class Smaller(ast.NodeTransformer):
    """Large sizes by an eighth, everywhere alike, and few layers: what is shown is often the published size of a model."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(node.value // 8) if type(node.value) is int and node.value >= LARGE and node.value % 8 == 0 else node

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        if node.arg and DEEP.fullmatch(node.arg) and isinstance(node.value, ast.Constant) and type(node.value.value) is int:
            return ast.keyword(node.arg, ast.Constant(min(node.value.value, 2)))
        self.generic_visit(node)
        return node
