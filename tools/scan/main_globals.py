"""Names that the main block of a script binds, and that the functions and classes of its file read.

`if __name__ == "__main__": n_hidden = 2` makes `n_hidden` a name of the file for whoever runs it, and of nothing for whoever imports it: its
classes can be constructed by the script alone. `lifted` moves such statements out of the block, where they do no more than compute plain values, so
that the classes can be imported, run beside their ports, and used. Reads syntax only.
"""

from __future__ import annotations

import ast
import builtins
import io
import sys
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from migrate_agent.tools.scan.exports import dotted_text, parse
from migrate_agent.tools.scan.scripts import TRAINING, is_acting_call
from migrate_agent.tools.scan.symbols import asks_for_main, defined_names, global_names, is_main, registered_with
from migrate_agent.tools.scan.walk import SourceError

COMMENT = "# From the main block of the script: the definitions above read it."
HEADER = 'if __name__ == "__main__":'
PARSING = frozenset({"parse_args", "parse_known_args"})
"""Calls that act, and that a file which is imported by its parts may make: without arguments of a command line they give the defaults."""
PACKAGES = sys.stdlib_module_names | {"torch", "numpy", "scipy", "einops"}
"""Packages whose functions compute and do no more, `ACTING` apart."""


def lift_main_globals(folder: Path) -> None:
    """Rewrite the files of a folder whose functions and classes read what their main block binds (`lifted`)."""
    for path in sorted(folder.rglob("*.py")):
        if path.is_symlink() or not path.is_file():
            continue
        old = path.read_bytes()
        if (new := lifted_bytes(old)) != old:
            path.write_bytes(new)


def lifted_bytes(source: bytes) -> bytes:
    """`lifted` of a file's content, unchanged where it is no UTF-8."""
    if b"__main__" not in source:
        return source
    try:
        return lifted(source.decode("utf-8")).encode("utf-8")
    except UnicodeDecodeError:
        return source


def lifted(text: str) -> str:
    """The text with the statements that its functions and classes need of the main block at the top level; unchanged where there are none.

    All statements keep their order, and those above the block their lines.
    """
    try:
        tree = parse(text)
    except SourceError:
        return text
    block = next((node for node in reversed(tree.body) if asks_for_main(node)), None)
    if not isinstance(block, ast.If) or block.orelse or any(_is_star(node) for node in tree.body):
        return text
    chosen = _chosen(tree, block)
    if (
        not chosen
        or any(before.end_lineno == after.lineno for before, after in pairwise(block.body))
        or block.body[0].lineno == block.lineno
    ):
        return text
    lines = text.splitlines(keepends=True)
    new = "".join([*lines[: block.lineno - 1], *_split(lines, block, chosen), *lines[block.end_lineno or len(lines) :]])
    return new if _same_order(tree, new) else text


def _chosen(tree: ast.Module, block: ast.If) -> set[int]:
    """Indices of the block's statements that go to the top level."""
    bound = {name for node in tree.body if node is not block for name in defined_names(node)}
    readers = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    wanted = {name for node in readers for name in _reads([node])} - bound - set(dir(builtins))
    scope = _Scope(tree, block, bound)
    chosen: set[int] = set()
    for name in sorted(wanted):
        chosen |= scope.needed(name) or set()
    return scope.with_those_between(chosen)


class _Scope:
    """What the statements of a main block bind and need."""

    def __init__(self, tree: ast.Module, block: ast.If, bound: set[str]) -> None:
        self._body, self._bound = block.body, bound
        self._modules = _modules([*tree.body, *block.body])
        self._values = {node.name for node in tree.body if isinstance(node, ast.ClassDef) and not _is_layer(node)}
        objects = {name for node in block.body for name in defined_names(node)}
        self._binding: dict[str, list[int]] = {}
        for index, node in enumerate(block.body):
            for name in {*defined_names(node), *registered_with(node, objects, {})}:
                self._binding.setdefault(name, []).append(index)
        self._names = objects

    def needed(self, name: str) -> set[int] | None:
        """The statements that bind a name and what they read, up to the first that does more than compute. None where it is bound by none."""
        needed: set[int] = set()
        row, visited = [name], set[str]()
        while row:
            name = row.pop()
            if name in visited or name in self._bound or hasattr(builtins, name):
                continue
            visited.add(name)
            indices = self._computed(name)
            if not indices:
                return None
            needed |= indices
            row += [read for index in indices for read in _reads([self._body[index]])]
        return needed

    def with_those_between(self, chosen: set[int]) -> set[int]:
        """The chosen statements, and bindings before the last of them that can go along: so the block is cut in fewer places. What only has an effect,
        such as a seed or a message, stays the script's."""
        names, indices = set(self._bound) | set(dir(builtins)), set(chosen)
        for index, statement in enumerate(self._body[: max(chosen, default=0)]):
            if index in chosen or (defined_names(statement) and self._computes(statement) and _reads([statement]) <= names):
                indices.add(index)
                names |= set(defined_names(statement))
        return indices

    def _computed(self, name: str) -> set[int]:
        indices: set[int] = set()
        for index in self._binding.get(name, ()):
            if not self._computes(self._body[index]):
                break
            indices.add(index)
        return indices

    def _computes(self, statement: ast.stmt) -> bool:
        """Whether a statement does no more than compute values: it calls neither layers, nor files of the repository, nor what acts or trains."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.Try, ast.Delete)):
            return False
        return all(self._is_plain(call) for call in ast.walk(statement) if isinstance(call, ast.Call))

    def _is_plain(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in TRAINING:
            return False
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if is_acting_call(call) and last not in PARSING:
            return False
        root = (dotted_text(call.func) or "").partition(".")[0]
        if not root:
            return True  # a method of a value that a call gave, or of a text
        if root in self._modules:
            return self._modules[root] in PACKAGES
        return hasattr(builtins, root) or root in self._values or root in self._names


def _split(lines: Sequence[str], block: ast.If, chosen: set[int]) -> Iterator[str]:
    """The lines of a block with the chosen statements at the top level, and a header before each run of others."""
    end = "\r\n" if lines[block.lineno - 1].endswith("\r\n") else "\n"
    indent = len(lines[block.body[0].lineno - 1]) - len(lines[block.body[0].lineno - 1].lstrip())
    texts = _lines_of_texts("".join(lines))
    yield f"{COMMENT if 0 in chosen else HEADER}{end}"
    line, guarded = block.lineno, 0 not in chosen
    for index, statement in enumerate(block.body):
        before, own = lines[line : statement.lineno - 1], lines[statement.lineno - 1 : statement.end_lineno]
        if index in chosen:
            yield from (text if line + n in texts else _dedented(text, indent) for n, text in enumerate((*before, *own), 1))
        elif not guarded:
            # The header takes the place of an empty line where there is one, so that lines stay where they are.
            yield from (f"{HEADER}{end}", *(before[1:] if before and not before[0].strip() else before), *own)
        else:
            yield from (*before, *own)
        line, guarded = statement.end_lineno or statement.lineno, index not in chosen


def _dedented(line: str, indent: int) -> str:
    return line[indent:] if not line[:indent].strip() and line.strip() else line


def _same_order(tree: ast.Module, text: str) -> bool:
    """Whether a text has the statements of a tree in their order, main blocks taken apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            new = ast.parse(text)
        except SyntaxError:
            return False
    return [ast.dump(node) for node in _apart(tree)] == [ast.dump(node) for node in _apart(new)]


def _apart(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.If) and is_main(node):
            yield from node.body
        else:
            yield node


def _reads(nodes: Iterable[ast.stmt]) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the user's string escapes
        return {name for node in nodes for name in global_names(ast.unparse(node))}


def _modules(body: Iterable[ast.stmt]) -> dict[str, str]:
    """Names that imports bind → the package that they come from; "" for relative ones."""
    rows: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.Import):
            rows |= {alias.asname or alias.name.partition(".")[0]: alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = (node.module or "").partition(".")[0] if not node.level else ""
            rows |= {alias.asname or alias.name: package for alias in node.names}
    return rows


def _is_layer(node: ast.ClassDef) -> bool:
    """Whether a class may be a torch module, by the names of its bases."""
    return not all((dotted_text(base) or "").rpartition(".")[2] in ("object", "NamedTuple", "Enum", "IntEnum") for base in node.bases)


def _is_star(node: ast.stmt) -> bool:
    """Whether it may bind any name: a star import of another package than those whose names are well known."""
    if not isinstance(node, ast.ImportFrom) or node.names[0].name != "*":
        return False
    return bool(node.level) or (node.module or "").partition(".")[0] not in PACKAGES


def _lines_of_texts(text: str) -> set[int]:
    """The numbers of the lines that begin inside of a string."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE"):
            lines |= set(range(token.start[0] + 1, token.end[0] + 1))
    return lines
