"""The names that one file's import statements and top level bind, and the public spelling of torch's names."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from migrate_agent.tools.scan.unreadable import because
from migrate_agent.tools.scan.walk import SourceError
from migrate_agent.tools.types import SourceFile

_CANONICAL = (
    (re.compile(r"^torch\.nn\.modules\.(?:\w+\.)?([A-Z]\w*)"), r"torch.nn.\1"),
    (re.compile(r"^torch\.nn\.parameter\.([A-Z]\w*)"), r"torch.nn.\1"),
    (re.compile(r"^torch\.(?:functional|_tensor)\.(\w+)"), r"torch.\1"),
    (re.compile(r"^torch\.nn\.utils\.(?:clip_grad|convert_parameters|spectral_norm|weight_norm)\.([a-z_]\w*)"), r"torch.nn.utils.\1"),
    (re.compile(r"^torch\.autograd\.variable\.(Variable)"), r"torch.autograd.\1"),
    (re.compile(r"^torch\.autograd\.function\.([A-Z]\w*)"), r"torch.autograd.\1"),
    (re.compile(r"^torch\.utils\.data\.(?:dataset|dataloader|sampler|distributed)\.([A-Z]\w*)"), r"torch.utils.data.\1"),
    (re.compile(r"^torch\.nn\.parallel\.(?:distributed|data_parallel)\.([A-Z]\w*)"), r"torch.nn.parallel.\1"),
    (re.compile(r"^torch\.optim\.(?!lr_scheduler|swa_utils)\w+\.([A-Z]\w*)"), r"torch.optim.\1"),
)
"""Name by torch's own files → name in torch's documentation."""


def canonical(dotted: str) -> str:
    """The public spelling of a torch name: `torch.nn.modules.linear.Linear` → `torch.nn.Linear`. Other names stay."""
    if dotted.startswith("torch."):
        for pattern, public in _CANONICAL:
            if pattern.match(dotted):
                return pattern.sub(public, dotted)
    return dotted


def parse(text: str) -> ast.Module:
    """`ast.parse` of what can be compiled too, without warnings about the user's string escapes.

    Raises `SourceError` (one line, with the line number).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(tree, "<source>", "exec", dont_inherit=True)  # `return` outside of a function, unknown future features
            return tree
    except SyntaxError as error:
        raise SourceError(because(error)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceError(f"line 1: {error or 'nested too deeply to parse'}") from error


def absolute(file: SourceFile, level: int, module: str) -> str:
    """The dotted module that `from <level dots><module> import …` in `file` means ("" for the import root itself)."""
    if not level:
        return module
    parts = file.module.split(".")
    if not file.path.endswith("/__init__.py"):
        parts = parts[:-1]
    parts = parts[: max(len(parts) - (level - 1), 0)]
    return ".".join([*parts, *([module] if module else [])])


def bindings(node: ast.Import | ast.ImportFrom, file: SourceFile) -> Iterator[tuple[str, str]]:
    """(local name, dotted name) of each name that an import statement binds; for a star import ("*", dotted module)."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        return
    module = absolute(file, node.level, node.module or "")
    for alias in node.names:
        if alias.name == "*":
            yield "*", module
        else:
            yield alias.asname or alias.name, canonical(f"{module}.{alias.name}" if module else alias.name)


def dotted_text(node: ast.expr) -> str | None:
    """`a.b.c` for a name or a chain of attributes on a name, else `None`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run at import, with those under `if`, `try`, `with`, `for`, `while` and `match`, in source order."""
    for statement in body:
        yield statement
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
            for part in getattr(statement, name, ()):
                yield from top_level([part] if isinstance(part, ast.stmt) else part.body)


@dataclass(frozen=True)
class Exports:
    """What the top level of a file binds.

    `definitions`: name → `class`, `function` or `variable`. `imports`: name → dotted name. `aliases`: variable → the text of the plain name
    that it is assigned (`Linear = nn.Linear`). `stars`: modules imported with `*`. `public`: `__all__` where it is written out.
    """

    definitions: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    public: frozenset[str] | None = None
    patches: Mapping[str, str] = field(default_factory=dict)
    """`nn.MaskedLinear` → `MaskedLinear`, for what the file hangs into a module that it imports."""

    def exported(self, name: str) -> bool:
        """Whether `from module import *` would bind this name, if the module has it."""
        return not name.startswith("_") if self.public is None else name in self.public

    def absolute(self, text: str, module: str) -> str | None:
        """The dotted name of text at the top level of `module`, if an import or a definition binds its first part."""
        first, dot, rest = text.partition(".")
        kind = self.definitions.get(first)
        if text in self.patches:
            return f"{module}.{self.patches[text]}"
        if first in self.imports and kind not in ("class", "function"):
            return canonical(self.imports[first] + dot + rest)
        return f"{module}.{text}" if kind else None


def exports(tree: ast.Module, file: SourceFile) -> Exports:
    """The names that the top level of a parsed file binds.

    An unconditional import replaces those before it. Of several under conditions or in `try` the first
    counts, but torch's and relative ones precede others.
    """
    always = {id(statement) for statement in tree.body}
    definitions: dict[str, str] = {}
    imports: dict[str, str] = {}
    aliases: dict[str, str] = {}
    stars: list[str] = []
    public: frozenset[str] | None = None
    for statement in top_level(tree.body):
        match statement:
            case ast.Import() | ast.ImportFrom():
                near = isinstance(statement, ast.ImportFrom) and bool(statement.level)
                for local, dotted in bindings(statement, file):
                    if local == "*":
                        stars.append(dotted)
                    elif (
                        id(statement) in always
                        or local not in imports
                        or ((near or dotted.startswith("torch.")) and not imports[local].startswith("torch."))
                    ):
                        imports[local] = dotted
            case ast.ClassDef(name=name):
                definitions[name] = "class"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                definitions[name] = "function"
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.With():
                for name, value in _assigned(statement):
                    definitions.setdefault(name, "variable")
                    if value is not None and (text := dotted_text(value)) and text != name:
                        aliases.setdefault(name, text)
                    if name == "__all__":
                        public = _strings(value) if isinstance(statement, ast.Assign) else None
    return Exports(definitions, imports, aliases, tuple(dict.fromkeys(stars)), public, patches(tree))


def patches(tree: ast.Module) -> dict[str, str]:
    """What the top level of a file hangs into a module that it imports, before anything reads it there: `nn.MaskedLinear = MaskedLinear`."""
    defined = {statement.name for statement in tree.body if isinstance(statement, (ast.ClassDef, ast.FunctionDef))}
    imported = {alias.asname or alias.name for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    result = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Attribute() as target], value=ast.Name(id=name)) if name in defined:
                text = dotted_text(target) or ""
                if text.partition(".")[0] in imported and _is_first(tree, target, text):
                    result[text] = name
    return result


def _is_first(tree: ast.Module, target: ast.Attribute, text: str) -> bool:
    """Whether a file says a dotted name nowhere above the place that binds it, and binds it there alone."""
    others = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node is not target and dotted_text(node) == text]
    return all(node.lineno > target.lineno and isinstance(node.ctx, ast.Load) for node in others)


def _assigned(statement: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With) -> Iterator[tuple[str, ast.expr | None]]:
    """(name, value) of each name that a statement assigns; the value is `None` where the name gets only a part of it."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            pairs: list[tuple[ast.expr, ast.expr | None]] = [(target, value) for target in targets]
        case ast.With(items=items):
            pairs = [(item.optional_vars, None) for item in items if item.optional_vars]
        case ast.AnnAssign(target=target, value=annotated):
            pairs = [(target, annotated)]
        case _:
            pairs = [(statement.target, None)]
    for goal, assigned in pairs:
        if isinstance(goal, ast.Name):
            yield goal.id, assigned
        else:
            yield from ((node.id, None) for node in ast.walk(goal) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _strings(node: ast.expr | None) -> frozenset[str] | None:
    """The strings of a written-out list or tuple, `None` for anything else."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    values = [element.value for element in node.elts if isinstance(element, ast.Constant)]
    return frozenset(map(str, values)) if len(values) == len(node.elts) else None
