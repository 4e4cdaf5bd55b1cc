"""The helpers of `tools/vendored/`, `tools/kernels/`, `tools/torchax/` and `tools/programs/vendored/`: what each
needs, and the text of a selection of them as one file.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath

from migrate_agent.tools.scan.symbols import defined_names, global_names
from migrate_agent.tools.scan.walk import HELPERS
from migrate_agent.tools.types import SourceFile

HEADER = '''"""Layers and functions with PyTorch's semantics in Flax NNX and JAX, as far as this code base uses them.

Copied by migrate-agent (Apache-2.0); they need jax and flax only.
"""
'''
PLAIN_HEADER = '''"""What Flax and JAX do not have themselves, as far as this code base uses it.

Copied by migrate-agent (Apache-2.0).
"""
'''
"""Of a mirror in plain style; by its first line, later commands know the style."""
OF_TORCHAX = "`TorchaxModule` needs torch and torchax, the others need jax and flax only."


@dataclass(frozen=True)
class Symbol:
    """A top-level definition of a vendored file: its text, the names it needs and, for a callable,
    whether it must be given `rngs`.
    """

    name: str
    text: str
    needs: frozenset[str]
    rngs: str
    """`required`, `optional` or "" (takes none)."""
    folder: str
    """The package of its file."""
    position: tuple[str, int]


FOLDERS = (
    "migrate_agent.tools.vendored",
    "migrate_agent.tools.kernels",
    "migrate_agent.tools.torchax",
    "migrate_agent.tools.programs.vendored",
)
CATALOGUE = ("catalogue", "SHAPES", "KERNEL")
"""A file and two names of the kernel library that only its checks use."""


@cache
def _files() -> tuple[tuple[str, str, str], ...]:
    """(name, package, text) of each."""
    packages = [importlib.import_module(folder) for folder in FOLDERS]
    files = [(info.name, package) for package in packages for info in pkgutil.iter_modules(package.__path__)]
    chosen = sorted((one for one in files if one[0] not in CATALOGUE), key=lambda one: (one[0], one[1].__path__[0]))
    return tuple((name, package.__name__, (Path(package.__path__[0]) / f"{name}.py").read_text()) for name, package in chosen)


@cache
def imports() -> Mapping[str, str]:
    """Name → import statement, over all vendored files. Imports of one vendored file by another are
    left out.
    """
    by_name: dict[str, str] = {}
    for _, _, text in _files():
        for statement in ast.parse(text).body:
            if isinstance(statement, ast.ImportFrom) and (
                statement.module == "__future__" or (statement.module or "").startswith("migrate_agent")
            ):
                continue
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                for alias in statement.names:
                    single = ast.unparse(
                        ast.Import([alias])
                        if isinstance(statement, ast.Import)
                        else ast.ImportFrom(statement.module, [alias], statement.level)
                    )
                    by_name[alias.asname or alias.name.partition(".")[0]] = single
    return by_name


@cache
def symbols() -> Mapping[str, Symbol]:
    """Every vendored symbol by name. Raises `ValueError` where two files define one name."""
    by_name: dict[str, Symbol] = {}
    for file, folder, text in _files():
        lines = text.splitlines(keepends=True)
        for statement in ast.parse(text).body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)) or _is_docstring(statement):
                continue
            # `lineno` points at `def`, so that decorators above it would be cut off.
            start = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
            source = "".join(lines[_first_comment(lines, start) - 1 : statement.end_lineno])
            for name in defined_names(statement):
                if name in CATALOGUE:
                    continue
                if name in by_name:
                    raise ValueError(f"two vendored definitions of {name}: {by_name[name].position[0]}.py and {file}.py")
                by_name[name] = Symbol(name, source, global_names(source), _rngs(statement), folder, (file, statement.lineno))
            # A function with a custom derivative is incomplete without the rule that registers it.
            for registry in _registries(statement):
                by_name[registry] = replace(by_name[registry], needs=by_name[registry].needs | {name})
    return by_name


@cache
def of_programs() -> frozenset[str]:
    """The symbols that only training scripts use."""
    return _of_folder("migrate_agent.tools.programs.vendored")


@cache
def of_torchax() -> frozenset[str]:
    """The symbols that run modules of torch through torchax."""
    return _of_folder("migrate_agent.tools.torchax")


def _of_folder(folder: str) -> frozenset[str]:
    return frozenset(name for name, symbol in symbols().items() if symbol.folder == folder)


def _registries(statement: ast.stmt) -> list[str]:
    """The functions of the same file that a decorator registers this one with: `f` of `@f.defjvp`."""
    decorators = [d.func if isinstance(d, ast.Call) else d for d in getattr(statement, "decorator_list", [])]
    names = [d.value.id for d in decorators if isinstance(d, ast.Attribute) and isinstance(d.value, ast.Name)]
    return [name for name in names if name not in imports()]


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _first_comment(lines: list[str], start: int) -> int:
    while start > 1 and lines[start - 2].startswith("#"):
        start -= 1
    return start


def _rngs(statement: ast.stmt) -> str:
    function = statement
    if isinstance(statement, ast.ClassDef):
        own = [s for s in statement.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"]
        if not own:
            return "inherited" if statement.bases else ""
        function = own[0]
    if not isinstance(function, ast.FunctionDef):
        return ""
    arguments = function.args
    pairs = list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    for argument, default in pairs:
        if argument.arg == "rngs":
            return "required" if default is None else "optional"
    return "optional" if arguments.kwarg else ""


@cache
def rngs_of(name: str) -> str:
    """Whether a vendored callable takes `rngs`: `required`, `optional` or "" (inheritance followed)."""
    symbol = symbols().get(name)
    if symbol is None:
        return "required"
    if symbol.rngs != "inherited":
        return symbol.rngs
    node = ast.parse(symbol.text).body[-1]
    assert isinstance(node, ast.ClassDef)
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in symbols():
            return rngs_of(base.id)
        if ast.unparse(base) == "nnx.Module":
            return ""
    return "required"


@cache
def properties(name: str) -> frozenset[str]:
    """Names of the properties of a vendored class, inherited ones included."""
    symbol = symbols().get(name)
    node = ast.parse(symbol.text).body[-1] if symbol else None
    if not isinstance(node, ast.ClassDef):
        return frozenset()
    own = {
        s.name
        for s in node.body
        if isinstance(s, ast.FunctionDef) and any(isinstance(d, ast.Name) and d.id == "property" for d in s.decorator_list)
    }
    return frozenset(own).union(*(properties(base.id) for base in node.bases if isinstance(base, ast.Name)))


MODES = ("deterministic", "use_running_average")
"""Attributes by which NNX tells training from evaluation."""


@cache
def has_modes(name: str) -> bool:
    """Whether a vendored class, or one that it derives from, does something else in evaluation mode; true of classes that are not vendored."""
    if name == "nnx.Module":
        return False
    symbol = symbols().get(name)
    node = ast.parse(symbol.text).body[-1] if symbol else None
    if symbol is None or not isinstance(node, ast.ClassDef) or any(mode in symbol.text for mode in MODES):
        return name not in WITHOUT_MODES
    return any(has_modes(ast.unparse(base)) for base in node.bases)


WITHOUT_MODES = frozenset({"nnx.Linear", "nnx.Conv", "nnx.ConvTranspose", "nnx.Embed", "nnx.LayerNorm", "nnx.RMSNorm", "nnx.GroupNorm"})
"""Layers of NNX that do the same in both modes."""


def closure(names: Iterable[str]) -> list[Symbol]:
    """The symbols and all that they need, in an order in which they can be defined."""
    chosen: dict[str, Symbol] = {}
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in chosen or name not in symbols():
            continue
        chosen[name] = symbols()[name]
        todo.extend(chosen[name].needs)
    return _ordered(list(chosen.values()))


def _ordered(chosen: list[Symbol]) -> list[Symbol]:
    """The symbols in source order, but each definition before code that uses it at import time
    (bases, constants, decorators).
    """
    by_name = {symbol.name: symbol for symbol in chosen}
    placed: dict[str, Symbol] = {}

    def place(symbol: Symbol, trail: frozenset[str]) -> None:
        # The trail breaks circles; functions that call each other do not need an order.
        if symbol.name in placed or symbol.name in trail:
            return
        for name in sorted(global_names(symbol.text, imports_only=True)):
            if name in by_name:
                place(by_name[name], trail | {symbol.name})
        placed[symbol.name] = symbol

    for symbol in sorted(chosen, key=lambda symbol: symbol.position):
        place(symbol, frozenset())
    return list(placed.values())


def render(names: Iterable[str], plain: bool = False) -> str:
    """The unformatted text of a file with the symbols, what they need, and the imports; `plain`: of a mirror in plain style."""
    return file_text(closure(names), plain)


def is_plain(text: str) -> bool:
    """Whether a file of helpers is that of a mirror in plain style."""
    return text.startswith(PLAIN_HEADER.partition("\n")[0])


def with_texts(texts: Mapping[str, str]) -> list[Symbol]:
    """The symbols of these names with other texts, in an order in which they can be defined."""
    chosen = [symbols()[name] for name in texts]
    # What registers itself with a symbol, such as its derivative, is named in no text of its.
    beside = {symbol.name: symbol.needs - global_names(symbol.text) for symbol in chosen}
    return _ordered(
        [replace(symbol, text=texts[symbol.name], needs=global_names(texts[symbol.name]) | beside[symbol.name]) for symbol in chosen]
    )


def file_text(chosen: Sequence[Symbol], plain: bool = False) -> str:
    """The unformatted text of a file with these symbols and their imports."""
    header = PLAIN_HEADER if plain else HEADER
    if any(symbol.name in of_torchax() for symbol in chosen):
        header = re.sub(r"\(Apache-2\.0\).*", f"(Apache-2.0). {OF_TORCHAX}", header)
    used = {name for symbol in chosen for name in symbol.needs}
    lines = [imports()[name] for name in sorted(used) if name in imports()]
    texts = list(dict.fromkeys(symbol.text.rstrip() for symbol in chosen))
    return "\n".join([header, "from __future__ import annotations", "", *dict.fromkeys(lines)]) + "\n\n\n" + "\n\n\n".join(texts) + "\n"


def module_of(file: SourceFile) -> tuple[str, str]:
    """How a file's mirror imports the vendored helpers: (relative package, module name)."""
    module = file.target_module.split(".")
    if not file.path.endswith("__init__.py"):
        module = module[:-1]
    return ("." * len(module), "nnx_layers") if module else ("", HELPERS.removesuffix(".py"))


def file_of(file: SourceFile) -> str:
    """Where the vendored helpers of a file's mirror lie: in its top package, or beside a top-level file."""
    # One copy in each top package, so that the package stays importable by itself.
    root = PurePosixPath(file.import_root or ".")
    module = file.target_module.split(".")
    if len(module) > 1 or file.path.endswith("__init__.py"):
        return str(root / module[0] / "nnx_layers.py")
    return str(root / HELPERS)


def is_beside(target: str) -> bool:
    """Whether a file of helpers lies beside top-level files, which import it by a name that it shares with those of other import roots."""
    return PurePosixPath(target).name == HELPERS
