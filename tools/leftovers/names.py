"""Names of torch in JAX source, and global names that nothing defines."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator

from migrate_agent.tools.leftovers.program import File

TORCH = ("torch", "torchvision", "torchaudio", "torchax", "torch_xla", "functorch")
OF_A_MODULE = (
    "__name__",
    "__file__",
    "__doc__",
    "__package__",
    "__path__",
    "__spec__",
    "__loader__",
    "__all__",
    "__builtins__",
    "__debug__",
)


def imported(file: File) -> Iterator[tuple[int, str]]:
    """(line, message) of each import of torch."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in TORCH and not node.level:
            yield node.lineno, f"imports {node.module}"
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, f"imports {alias.name}") for alias in node.names if alias.name.partition(".")[0] in TORCH)


def find(file: File, text: str) -> Iterator[tuple[int, str]]:
    """(line, message) of each use of a name of torch that the file does not import, and of the first use of each undefined name."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Name) and node.id in TORCH and node.id not in file.imports:
            yield node.lineno, f"{node.id} is left"
    undefined = _undefined(file.tree, text)
    for name in sorted(undefined - set(TORCH)):
        line = min((node.lineno for node in ast.walk(file.tree) if isinstance(node, ast.Name) and node.id == name), default=0)
        yield line, f"{name} is not defined"


def _undefined(tree: ast.Module, text: str) -> frozenset[str]:
    """Global names that the file reads and does not bind. None where a star import may bind any."""
    bound = {*dir(builtins), *OF_A_MODULE}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            bound |= {*node.names}
    pending: list[ast.AST] = list(tree.body)
    while pending:
        match pending.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                if any(alias.name == "*" for alias in names):
                    return frozenset()
                bound |= {alias.asname or alias.name.partition(".")[0] for alias in names}
            case ast.Name(id=name, ctx=ast.Store()):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)) as handler:
                bound.add(name)
                pending += handler.body
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                pass
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case node:
                pending += ast.iter_child_nodes(node)
    # A name in an annotation that is a string is read by nobody.
    return frozenset(_read(symtable.symtable(text, "<source>", "exec"))) - bound - _probed(tree)


def _read(table: symtable.SymbolTable) -> Iterator[str]:
    """Global names that a scope and those inside it read."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _read(child)


def _probed(tree: ast.Module) -> frozenset[str]:
    """Names that the file tries to read, and does without where they are not there."""
    attempts = [node for node in ast.walk(tree) if isinstance(node, ast.Try) and any(_catches_undefined(one) for one in node.handlers)]
    return frozenset(name.id for one in attempts for child in one.body for name in ast.walk(child) if isinstance(name, ast.Name))


def _catches_undefined(handler: ast.ExceptHandler) -> bool:
    caught = {"NameError"} if handler.type is None else {name.id for name in ast.walk(handler.type) if isinstance(name, ast.Name)}
    return bool(caught & {"NameError", "Exception", "BaseException"})
