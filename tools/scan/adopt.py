"""Files of installed packages that a repository's modules are made of, so that their mirror is written along with the repository's own.

A repository that imports `DropPath` from a package of torch code cannot be mirrored without it: the target never imports torch. Such a
package is *adopted*: its files that the imports reach join the inventory, and what a unit needs of them is rewritten into
`<package>_jax/` beside the repository's mirror. Left alone are packages that need no torch, and those that speak JAX themselves (einops).
Nothing is imported or run: packages are found on `sys.path` and read as text.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from migrate_agent.tools.scan.layout import Statement, statements
from migrate_agent.tools.scan.walk import SourceError, read_source
from migrate_agent.tools.types import SourceFile

MOST_FILES = 300
"""Largest number of reached files of a package that is adopted: a larger one is a framework, to be replaced rather than copied."""
NEVER = frozenset({"torch", "torchgen", "functorch", "triton", "jax", "flax", "optax", "numpy", "scipy", "migrate_agent"})
OF_TORCH = frozenset({"torchvision"})
"""Packages that need torch, as is known where they are not installed."""
_TORCH = re.compile(r"^[ \t]*(?:from|import)[ \t]+torch\b", re.M)
_JAX = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:jax|flax)\b", re.M)
_NEEDS_TORCH = re.compile(r"^(?:from|import)[ \t]+torch\b", re.M)
_NEEDS_JAX = re.compile(r"^(?:from|import)[ \t]+(?:jax|flax)\b", re.M)


@dataclass(frozen=True)
class Adoption:
    """`files` to add to the inventory, and the top-level `packages` that need torch but are not adopted (too large, or compiled)."""

    files: tuple[SourceFile, ...] = ()
    packages: tuple[str, ...] = ()


@dataclass
class _Module:
    """A module of an installed package: its file, and the modules outside torch that it imports."""

    name: str
    place: Path
    torch: bool = False
    jax: bool = False
    imports: set[str] = field(default_factory=set)


def adopt_packages(files: Sequence[SourceFile], sources: Mapping[str, str]) -> Adoption:
    """The files of installed packages that import torch and that the repository's torch files import."""
    own = {file.module.partition(".")[0] for file in files}
    reached = _Reached(own)
    for file in files:
        if file.uses_torch:
            try:
                reached.follow(statements(sources[file.path]))
            except SourceError:
                continue
    groups: dict[str, list[_Module]] = {}
    for module in reached.modules.values():
        groups.setdefault(module.name.partition(".")[0], []).append(module)
    tainted = reached.tainted()
    bound = {name for name, group in groups.items() if not any(m.jax for m in group) and any(m.name in tainted for m in group)}
    adopted = sorted(name for name in bound if len(groups[name]) <= MOST_FILES)
    # The mirror of a package lies in one place; the root of most torch files can import it.
    roots = Counter(file.import_root for file in files if file.uses_torch)
    root = roots.most_common(1)[0][0] if roots else ""
    rows = [_source_file(module, root, title) for name in adopted for title in [_title(name)] for module in groups[name]]
    absent = {name for name in reached.named & OF_TORCH if name not in groups}
    return Adoption(tuple(sorted(rows, key=lambda row: row.module)), tuple(sorted((bound - set(adopted)) | reached.compiled | absent)))


def _serves_jax(text: str) -> bool:
    """Whether a module works with JAX too: one that needs torch, and imports jax in a function to read its checkpoints, does not."""
    return bool(_NEEDS_JAX.search(text) or (_JAX.search(text) and not _NEEDS_TORCH.search(text)))


class _Reached:
    """The modules of installed packages that import statements lead to, read once each."""

    def __init__(self, own: set[str]) -> None:
        self.own = own
        self.modules: dict[str, _Module] = {}
        self.compiled: set[str] = set()
        self.named: set[str] = set()
        """Packages that the repository's own files import."""
        self._places: dict[str, Path | None] = {}

    def follow(self, first: Iterable[Statement]) -> None:
        """Read all modules that these statements lead to, and those that these need."""
        first = list(first)
        self.named |= {name.partition(".")[0] for statement in first if not statement.level for name in statement.dotted} - self.own
        row = [name for statement in first if not statement.level if (name := self._module(statement.dotted))]
        while row:
            name = row.pop()
            if name not in self.modules:
                module = self.modules[name] = self._read(name)
                row += module.imports

    def tainted(self) -> set[str]:
        """The names of modules that import torch, directly or through another module."""
        importers = {module.name for module in self.modules.values() if module.torch}
        while more := {module.name for module in self.modules.values() if module.name not in importers and module.imports & importers}:
            importers |= more
        return importers

    def _read(self, name: str) -> _Module:
        path = self._places[name]
        assert path is not None
        module = _Module(name, path)
        try:
            text = read_source(path)
        except SourceError:
            return module
        module.torch, module.jax = bool(_TORCH.search(text)), _serves_jax(text)
        for statement in statements(text):
            dotted = statement.dotted if not statement.level else self._relative(module, statement)
            if (other := self._module(dotted)) and other != name:
                module.imports.add(other)
        return module

    def _relative(self, module: _Module, statement: Statement) -> tuple[str, ...]:
        parts = module.name.split(".")
        package = parts if module.place.name == "__init__.py" else parts[:-1]
        base = package[: len(package) - (statement.level - 1)]
        return tuple(".".join([*base, *rest.split(".")]) if rest else ".".join(base) for rest in (*statement.dotted, ""))

    def _module(self, dotted: Iterable[str]) -> str:
        """The longest of these names that is a module of an installed package of source code, else ""."""
        for name in dotted:
            top = name.partition(".")[0]
            if not top or top in self.own or top in NEVER or top in sys.stdlib_module_names:
                continue
            if self._place(name) is not None:
                return name
        return ""

    def _place(self, name: str) -> Path | None:
        if name not in self._places:
            self._places[name] = self._find(name)
        return self._places[name]

    def _find(self, name: str) -> Path | None:
        package, _, last = name.rpartition(".")
        if package:
            above = self._place(package)
            if above is None or above.name != "__init__.py":
                return None
            return next((p for p in (above.parent / last / "__init__.py", above.parent / f"{last}.py") if p.is_file()), None)
        try:
            # Only top-level names go to the finder: for a submodule it would import the package.
            spec = importlib.machinery.PathFinder.find_spec(name)
        except (ImportError, ValueError):
            return None
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        return Path(spec.origin)


def _title(package: str) -> str:
    """`name version (licence)` of the distribution that holds a package, as far as it says."""
    for name in importlib.metadata.packages_distributions().get(package, ()):
        data = importlib.metadata.metadata(name).json
        licence = data.get("license_expression") or _short_line(data.get("license")) or _licence_classifier(data.get("classifier") or ())
        return f"{data['name']} {data['version']}" + (f" ({licence})" if licence else "")
    return package


def _short_line(text: object) -> str:
    line = str(text or "").strip().partition("\n")[0]
    return line if len(line) < 60 else ""


def _licence_classifier(rows: Iterable[str]) -> str:
    return next((row.rpartition("::")[2].strip() for row in rows if row.startswith("License ::")), "")


def _source_file(module: _Module, root: str, title: str) -> SourceFile:
    parts = module.name.split(".")
    mirror = [parts[0] + "_jax", *parts[1:]]
    target = [*mirror, "__init__"] if module.place.name == "__init__.py" else mirror
    return SourceFile(
        path=module.place.as_posix(),
        module=module.name,
        target="/".join([*([root] if root else []), *target]) + ".py",
        target_module=".".join(mirror),
        uses_torch=True,
        import_root=root,
        adopted=title,
    )


def adopted_packages(files: Iterable[SourceFile]) -> Iterator[str]:
    """`package: distribution` of each adopted package, for people to read."""
    titles: dict[str, str] = {}
    for file in files:
        if file.adopted:
            titles.setdefault(file.module.partition(".")[0], file.adopted)
    yield from (f"{package}: {title}" for package, title in sorted(titles.items()))
