"""The graph of definitions over all files of a repository: their uses, the module classes, and the needs of each module."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from migrate_agent.tools.scan.facts import Definition
from migrate_agent.tools.scan.names import RepositoryName, Resolver
from migrate_agent.tools.scan.survey import Reading
from migrate_agent.tools.types import SourceFile

TORCH_MODULE = re.compile(
    r"torch\.nn\.(?!Parameter$|Buffer$|Uninitialized|utils\.|functional\.|init\.)(\w+\.)*[A-Z_]\w*|torch\.nn\.modules\.\w+\._\w+"
    r"|torch\.jit\.ScriptModule|torch\.fx\.GraphModule|torch\.ao\.nn\..+|einops\.layers\.torch\.\w+"
)
"""Classes of torch (and of einops' torch layers) that are modules. Their semantics are known to the rewriter."""
FOREIGN_MODULE = re.compile(
    r"(pytorch_lightning|lightning)\..*LightningModule|transformers\..*PreTrainedModel|transformers\..*Model|diffusers\..*Model(Mixin)?"
    r"|torchvision\.models\..+|torchvision\.ops\.[A-Z]\w*|timm\..*\.[A-Z]\w*|torch_geometric\.nn\..*[A-Z]\w*|torchaudio\.models\..+"
    r"|fairseq\..*(Model|Module|Encoder|Decoder|Criterion)|sentence_transformers\.SentenceTransformer"
)
"""Classes of other packages that are modules by their name."""
_NO_MODULE = re.compile(
    r"torch\.(?!nn\.)(\w+\.)*\w+|numpy\..+|pydantic\..+|torch\.nn\.(Parameter|Buffer)|transformers\..*(Config|Tokenizer|Trainer|Output)\w*"
)
_TORCH_LAYER = re.compile(r"torch\.nn\.[A-Z]\w*")


class Key(NamedTuple):
    """A definition: file and qualified name."""

    path: str
    name: str


class Ancestry(NamedTuple):
    """The classes of the repository that a class inherits from (itself left out), and the dotted names of those outside."""

    classes: tuple[Key, ...]
    outside: tuple[str, ...]


class Edges(NamedTuple):
    """The uses of a definition: definitions of the repository, names from outside, and the files through which names resolve."""

    inside: frozenset[Key]
    outside: frozenset[str]
    files: frozenset[str]


class Reach(NamedTuple):
    """The needs of a module: other modules, and helpers (functions, variables, other classes)."""

    units: tuple[Key, ...]
    helpers: tuple[Key, ...]


class Graph:
    """The definitions of a repository and their uses of each other. Results are computed on demand and cached."""

    def __init__(self, files: Sequence[SourceFile], readings: Mapping[str, Reading], resolver: Resolver) -> None:
        self.files = {file.path: file for file in files}
        self.resolver = resolver
        self.readings = readings
        self.definitions: dict[Key, Definition] = {
            Key(file.path, definition.name): definition for file in files for definition in readings[file.path].facts.definitions
        }
        self._edges: dict[Key, Edges] = {}
        self._ancestry: dict[Key, Ancestry] = {}

    def locate(self, target: RepositoryName) -> Key | None:
        """The innermost known definition that a name of the repository stands for or lies in."""
        name = target.name
        while name:
            definition = self.definitions.get(Key(target.file.path, name))
            if definition is not None and definition.kind != "local":
                return Key(target.file.path, name)
            name = name.rpartition(".")[0]
        return None

    def edges(self, key: Key) -> Edges:
        if key not in self._edges:
            self._edges[key] = self._find_edges(key)
        return self._edges[key]

    def _find_edges(self, key: Key) -> Edges:
        near = self.files[key.path]
        inside: set[Key] = set()
        outside: set[str] = set()
        files: set[str] = set()
        for name in self.definitions[key].uses:
            link = self.resolver.follow(name, near)
            if link is None:
                continue
            files.update(file.path for file in link.via)
            if link.definition is None:
                outside.add(link.elsewhere)
            elif (used := self.locate(link.definition)) is not None and used != key:
                inside.add(used)
                inside.update(self._enclosing(used, key))
                if self.definitions[used].kind == "variable" and (alias := self.resolver.origin(name, near)) and alias.startswith("torch."):
                    outside.add(alias)
        return Edges(frozenset(inside), frozenset(outside), frozenset(files))

    def _enclosing(self, used: Key, user: Key) -> Iterator[Key]:
        """The classes around a nested class, for those that use it from outside of them."""
        name = used.name.rpartition(".")[0]
        while name:
            outer = Key(used.path, name)
            if outer in self.definitions and not (user.path == used.path and f"{user.name}.".startswith(f"{name}.")):
                yield outer
            name = name.rpartition(".")[0]

    def ancestry(self, key: Key) -> Ancestry:
        if key not in self._ancestry:
            self._ancestry[key] = Ancestry((), ())  # a class that inherits from itself has no further ancestors
            self._ancestry[key] = self._find_ancestry(key)
        return self._ancestry[key]

    def _find_ancestry(self, key: Key) -> Ancestry:
        near, definition = self.files[key.path], self.definitions[key]
        classes: list[Key] = []
        outside: list[str] = []
        # `Base = nn.Module if a else b`: the class may be any of the names that the variable is made of
        bases = definition.bases if definition.kind in ("class", "local") else sorted(definition.uses)
        for base in bases:
            link = self.resolver.follow(base, near, aliases=True)
            parent = self.locate(link.definition) if link and link.definition else None
            if parent is not None and self.definitions[parent].kind in ("class", "variable"):
                above = self.ancestry(parent)
                classes += [parent, *above.classes]
                outside += above.outside
            else:
                outside.append(link.elsewhere if link and link.elsewhere else base)
        return Ancestry(tuple(dict.fromkeys(classes)), tuple(dict.fromkeys(outside)))

    @cached_property
    def units(self) -> frozenset[Key]:
        """The repository's classes that are modules: by their ancestors, or where one of these is not known, by `forward` and the layers they
        build. Those that stand in for a class of torch's are none: torch has it."""
        classes = [
            key
            for key, definition in self.definitions.items()
            if definition.kind == "class" and not self.files[key.path].adopted and key.name not in self.readings[key.path].facts.fallbacks
        ]
        sure = {key for key in classes if self.is_module(key)}
        open_ones = [key for key in classes if key not in sure and self._may_be_module(key)]
        # A class of unknown base becomes a module once it builds one, which may make further
        # classes modules.
        while grown := {key for key in open_ones if key not in sure and self._builds_layers(key, sure)}:
            sure |= grown
        return frozenset(sure)

    def is_module(self, key: Key) -> bool:
        """Whether a class inherits from a class that is known to be a module."""
        return any(TORCH_MODULE.fullmatch(name) or FOREIGN_MODULE.fullmatch(name) for name in self.ancestry(key).outside)

    def _may_be_module(self, key: Key) -> bool:
        line = (key, *self.ancestry(key).classes)
        return bool(self.unknown_bases(key)) and any("forward" in self.definitions[ancestor].methods for ancestor in line)

    def unknown_bases(self, key: Key) -> tuple[str, ...]:
        """Ancestors outside of the repository that may be modules for all that is known."""
        return tuple(
            name
            for name in self.ancestry(key).outside
            if not (name.split(".")[0] in sys.stdlib_module_names or name.startswith(("builtins.", "typing_extensions.")))
            and not _NO_MODULE.fullmatch(name)
            and not TORCH_MODULE.fullmatch(name)
        )

    def _builds_layers(self, key: Key, units: set[Key]) -> bool:
        edges = self.edges(key)
        inherits = any(parent in units for parent in self.ancestry(key).classes)
        return inherits or any(used in units for used in edges.inside) or any(_TORCH_LAYER.fullmatch(name) for name in edges.outside)

    def reach(self, key: Key) -> Reach:
        """All modules that a definition uses, itself or through helpers, but not through other modules; and those helpers."""
        reached, row = {key}, self.edges(key).inside - {key}
        while row:
            reached |= row
            row = frozenset().union(*(self.edges(used).inside for used in row - self.units)) - reached
        reached.remove(key)
        return Reach(tuple(sorted(reached & self.units)), tuple(sorted(reached - self.units)))

    def called(self, key: Key) -> tuple[Key, ...]:
        """The helpers that a definition certainly runs, nearest first: those it names, and those they name, but not what only a table
        (a registry of alternatives) holds. Aliases (`attend = FlashFunction.apply`) are no tables."""
        helpers: dict[Key, None] = {}
        row = self.edges(key).inside - self.units - {key}
        while row:
            helpers.update(dict.fromkeys(sorted(row)))
            near = (self.edges(used).inside for used in row if not self._is_table(used))
            row = frozenset().union(*near) - self.units - {key} - helpers.keys()
        return tuple(helpers)

    def _is_table(self, key: Key) -> bool:
        return self.definitions[key].kind == "variable" and key.name not in self.readings[key.path].facts.exports.aliases
