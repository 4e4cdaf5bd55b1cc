"""The candidate's own files, parsed: what it imports, and the names it uses by their full dotted origin. Standard library only."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, update_wrapper
from pathlib import Path, PurePosixPath
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from migrate_agent.tools.types import Verdict

P = ParamSpec("P")
Found = TypeVar("Found")
KEPT = 32
"""Number of parsed files in the caches: from one attempt to the next hardly any file changes."""


@dataclass(frozen=True)
class Source:
    """One file of the candidate: its path in the tree, and its syntax tree, or why there is none; and its text, where it was read from a file."""

    path: str
    tree: ast.Module
    error: str = ""
    text: str = ""


class Use(NamedTuple):
    """A dotted name used somewhere, imports resolved: `jax.pure_callback`, `builtins.open`. `stored`: an attribute of that name is set or deleted."""

    name: str
    line: int
    stored: bool


def parse(root: Path, path: str) -> Source:
    """Read and parse a file; the tree is shared by all callers with the same text. An unreadable file has its `error`."""
    try:
        return _parsed((root / path).read_bytes(), path)
    except OSError as error:
        return Source(path, ast.Module([], []), f"{path}: {error}")


@lru_cache(KEPT)
def _parsed(text: bytes, path: str) -> Source:
    try:
        return Source(path, ast.parse(text, path), text=text.decode(tokenize.detect_encoding(io.BytesIO(text).readline)[0]))
    except SyntaxError as error:
        return Source(path, ast.Module([], []), f"{path}:{error.lineno}: {error.msg}")
    except ValueError as error:
        return Source(path, ast.Module([], []), f"{path}: {error}")


def once(find: Callable[Concatenate[Source, P], Iterable[Found]]) -> Callable[Concatenate[Source, P], tuple[Found, ...]]:
    """`find`, cached by the file and its further (hashable) arguments."""

    cached = lru_cache(KEPT)(lambda *positional, **named: tuple(find(*positional, **named)))
    return cast("Callable[Concatenate[Source, P], tuple[Found, ...]]", update_wrapper(cached, find))


def closure(root: Path, target: str, import_roots: Sequence[str], without: Collection[str] = ()) -> tuple[Source, ...]:
    """The target file and every file of the tree that it imports, directly or not (packages' `__init__.py` included).

    Files are imported from these folders of the tree; the first is the target's own. Those `without` are not followed.
    """
    sources: dict[str, Source] = {}
    waiting = [target, *_packages(root, target, import_roots)]
    while waiting:
        path = waiting.pop(0)
        if path in sources or path in without:
            continue
        sources[path] = parse(root, path)
        for module in _imported(sources[path], module_name(path, root_of(path, import_roots))):
            waiting += [file for import_root in import_roots for file in _files(root, module, import_root)]
    return tuple(sources.values())


def root_of(path: str, import_roots: Sequence[str]) -> str:
    """The first of these folders that a file lies below."""
    return next((root for root in import_roots if PurePosixPath(path).is_relative_to(root or ".")), "")


def module_name(path: str, import_root: str) -> str:
    """`pkg.a` for `src/pkg/a.py` with import root `src`."""
    parts = PurePosixPath(path).relative_to(import_root or ".").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@once
def _imported(source: Source, module: str) -> Iterator[str]:
    return imported_modules(source.tree, module, source.path.endswith("__init__.py"))


def _packages(root: Path, path: str, import_roots: Sequence[str]) -> list[str]:
    import_root = root_of(path, import_roots)
    return [file for file in _files(root, module_name(path, import_root), import_root) if file != path]


def _files(root: Path, module: str, import_root: str) -> list[str]:
    """The files that importing a module runs: its packages' `__init__.py` and its own. Empty for modules from elsewhere."""
    parts = module.split(".")
    files = []
    for count in range(1, len(parts) + 1):
        base = PurePosixPath(import_root, *parts[:count])
        files += [str(path) for path in (base / "__init__.py", base.with_name(base.name + ".py")) if (root / path).is_file()]
    return files


def imported_modules(tree: ast.Module, module: str, package: bool) -> Iterator[str]:
    """Dotted names of all modules that may be imported by a file, wherever in it. `from a import b` may mean module `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _absolute(node: ast.ImportFrom, module: str, package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".") if package else module.split(".")[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def bindings(tree: ast.Module) -> dict[str, str]:
    """Local name → dotted name of each import. One table for the file: a name imported anywhere counts everywhere."""
    table = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                table[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                table[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return table


@once
def uses(source: Source) -> Iterator[Use]:
    """Every dotted name whose first part is imported or a builtin, with imports resolved."""
    table = bindings(source.tree)
    own = {node.name for node in ast.walk(source.tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}
    for node in _outermost(source.tree):
        name = dotted(node)
        head, _, rest = name.partition(".")
        # A bare name that is assigned is a local variable, or the file's own: what was imported stays as it is.
        stored = bool(rest) and isinstance(node.ctx, (ast.Store, ast.Del))
        if head in table:
            yield Use(table[head] + ("." + rest if rest else ""), node.lineno, stored)
        elif head not in own:
            yield Use(f"builtins.{name}", node.lineno, stored)
    for statement in ast.walk(source.tree):
        if isinstance(statement, ast.ImportFrom) and not statement.level:
            yield from (Use(f"{statement.module}.{alias.name}", statement.lineno, False) for alias in statement.names)


def _outermost(tree: ast.AST) -> Iterator[ast.Attribute | ast.Name]:
    """Names, and attributes of names in full: `a.b.c` once, not `a.b` and `a` as well."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Attribute, ast.Name)) and dotted(node):
            yield node
        else:
            waiting.extend(ast.iter_child_nodes(node))


def dotted(node: ast.expr) -> str:
    """`a.b.c` for attributes of a name, "" for all else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def within(name: str, forbidden: Iterable[str]) -> bool:
    """Whether a dotted name is one of these or lies under one."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in forbidden)


def judged(check: str, sources: Iterable[Source], find: Callable[[Source], Iterable[tuple[int, str]]]) -> Verdict:
    """A static verdict: it fails with the first (line, message) that `find` yields for a file."""
    return failed_at(check, [f"{source.path}:{line}: {words}" for source in sources for line, words in find(source)])


def failed_at(check: str, problems: Sequence[str]) -> Verdict:
    """A static verdict: it fails with the first of these problems (`file:line: words`), where there is one."""
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return Verdict("static", check, "fail", float(len(problems)), 0.0, problems[0] + more)
    return Verdict("static", check, "pass", 0.0, 0.0)
