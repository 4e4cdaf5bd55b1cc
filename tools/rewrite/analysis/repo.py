"""The parsed files of a repository, with names resolved across files and the classes related to
each other.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from migrate_agent.tools.rewrite.analysis.facts import Result
from migrate_agent.tools.rewrite.analysis.mixins import inline_mixin_bases
from migrate_agent.tools.rewrite.analysis.names.listed_stars import listed_stars
from migrate_agent.tools.rewrite.analysis.packages.reached import reached_files, without_unreached
from migrate_agent.tools.rewrite.analysis.plain_layers.groups import connected
from migrate_agent.tools.rewrite.analysis.plain_layers.stacks import LayerStacks
from migrate_agent.tools.rewrite.analysis.plain_layers.uses import PlainLayers, plain_layers
from migrate_agent.tools.rewrite.analysis.state_entries import entries_as_attributes
from migrate_agent.tools.rewrite.tables.canonical_names import TORCH
from migrate_agent.tools.rewrite.tables.layers.lazy import LAZY
from migrate_agent.tools.rewrite.tables.registry import layers, ops, public_name
from migrate_agent.tools.rewrite.tables.torch_copies import torch_copies
from migrate_agent.tools.scan.exports import dotted_text, patches
from migrate_agent.tools.scan.indentation import in_spaces, moved_by
from migrate_agent.tools.scan.names import Imports, Resolver
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.scan.symbols import global_names
from migrate_agent.tools.types import Inventory, Observations, Observed, SourceFile

MODULE_BASES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "torch.nn.modules.Module", "torch.jit.ScriptModule"})
LOCAL = ".<locals>"
BUFFERS = frozenset({"num_batches_tracked"})
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class ClassModel:
    """A class of the repository. `attributes` (name → fact of `self.name`) is filled while the
    facts of the file are inferred.
    """

    file: FileModel
    qualname: str
    node: ast.ClassDef
    attributes: dict[str, Observed | None] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.file.file.path}:{self.qualname}"

    @property
    def dotted(self) -> str:
        return f"{self.file.file.module}.{self.qualname}"

    @cached_property
    def methods(self) -> dict[str, FunctionNode]:
        return {s.name: s for s in self.node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}

    @cached_property
    def own(self) -> dict[int, str]:
        """`id` of each AST node `self.<name>` → the name, where `self` is the first parameter of a
        method, however it is called.
        """
        names: dict[int, str] = {}
        for method in self.node.body:  # a property has several of one name
            if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            parameters = [*method.args.posonlyargs, *method.args.args]
            if not parameters or any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in method.decorator_list):
                continue
            for node in walk(method):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == parameters[0].arg:
                    names[id(node)] = node.attr
        return names

    @cached_property
    def buffers(self) -> dict[str, bool]:
        """Name of each buffer registered by a literal name → whether it is persistent."""
        names: dict[str, bool] = {}
        for call in _self_calls(self.node, "register_buffer"):
            name = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "name"), None)
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                persistent = call.args[2] if len(call.args) > 2 else next((k.value for k in call.keywords if k.arg == "persistent"), None)
                names[name.value] = not (isinstance(persistent, ast.Constant) and persistent.value is False)
        return names

    @cached_property
    def computes_names(self) -> bool:
        """Whether a `register_buffer` call computes its name."""
        return any(not (call.args and isinstance(call.args[0], ast.Constant)) for call in _self_calls(self.node, "register_buffer"))


@dataclass
class FileModel:
    """A parsed file. `bindings` maps names bound by imports (anywhere at top level) to dotted names."""

    file: SourceFile
    text: str
    tree: ast.Module
    moved: dict[int, int] = field(default_factory=dict)
    """Line → by how many columns its code stands further to the right here than in the file itself (`tools/scan/indentation.py`)."""
    bindings: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    classes: dict[str, ClassModel] = field(default_factory=dict)
    functions: dict[str, FunctionNode] = field(default_factory=dict)
    top_names: set[str] = field(default_factory=set)
    runtime_imports: dict[str, str] = field(default_factory=dict)
    """Name bound by a function that imports at run time → the dotted name observed for it;
    `bindings` has these names too.
    """

    @property
    def names_torch(self) -> bool:
        """Whether the file imports torch, a package of its makers, or layers of it."""
        names = (*self.bindings.values(), *self.stars)
        return any(name.partition(".")[0] in TORCH or name.startswith("einops.layers.torch") for name in names)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines() or [""]

    @cached_property
    def other_names(self) -> dict[str, ast.expr]:
        """Names that the file binds once, to another name: `Calculation = BaseCalculation`."""
        bound = [n.id for statement in self.tree.body for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        found = {}
        for statement in self.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value) if bound.count(name) == 1:
                    found[name] = value
        return {name: value for name, value in found.items() if name not in {**self.classes, **self.functions, **self.bindings}}

    @cached_property
    def patches(self) -> dict[str, str]:
        """What the file hangs into torch, under a name that torch lacks: `nn.MaskedLinear` → the name of its own class or function."""
        return {text: name for text, name in patches(self.tree).items() if self._is_new(text)}

    def _is_new(self, text: str) -> bool:
        first, _, rest = text.partition(".")
        dotted = public_name(f"{self.bindings.get(first, '')}.{rest}")
        return dotted.startswith("torch.") and dotted not in ops() and dotted not in layers()

    def own(self, name: str) -> str:
        """The dotted name of a top-level definition of this file, or ""."""
        return f"{self.file.module}.{name}" if name in self.top_names else ""


class Repo:
    """All parsed files of an inventory, by path; resolution of dotted names to their definitions.

    Of installed packages it has the files that the repository's own lead to, and those that were `observed` to run.
    """

    def __init__(self, inventory: Inventory, observed: Collection[str] = ()) -> None:
        self.inventory = inventory
        self.files: dict[str, FileModel] = {}
        self.modules: dict[str, FileModel] = {}
        for source in inventory.files:
            if not source.error:
                self._load(source)
        self.resolver = Resolver(inventory.files, {path: model.text for path, model in self.files.items()})
        for model in self.files.values():
            model.bindings = {name: self.canonical(dotted, model.file) for name, dotted in model.bindings.items()}
            model.stars = [self.canonical(star, model.file) for star in model.stars]
        self._resolved: dict[str, tuple[FileModel, str] | None] = {}
        self._plain_of_groups: dict[int, PlainLayers] = {}
        self.stacks = LayerStacks()
        """Lists of equal layers that become stacks, where these are asked for."""
        self.results: dict[tuple[str, str], Result] = {}
        """(file path, function) → what calls give, filled while the facts of the file are inferred."""
        bound: set[str] = set()
        for model in self.files.values():
            self._bind_stars(model, bound)
        for model in self.files.values():
            model.bindings = {name: self._handed_on(dotted) for name, dotted in model.bindings.items()}
        self._bind_copies()
        reached = reached_files(self.files.values(), self.modules, observed)
        self.files = {path: model for path, model in self.files.items() if path in reached}
        self.modules = {name: model for name, model in self.modules.items() if model.file.path in reached}
        self._resolved.clear()
        self.units = {unit.id: unit for unit in inventory.units}
        self.adopted = frozenset(file.module.partition(".")[0] for file in inventory.files if file.adopted)

    @property
    def is_plain(self) -> bool:
        """Whether the mirror is to be in plain style."""
        return self.inventory.style == "plain"

    @cached_property
    def writes_buffers(self) -> bool:
        """Whether a function other than a constructor writes to an attribute that is the name of a buffer of some class."""
        buffers = BUFFERS.union(*(model.buffers for file in self.files.values() for model in file.classes.values()))
        functions = [node for file in self.files.values() for node in walk(file.tree) if isinstance(node, ast.FunctionDef)]
        return any(not buffers.isdisjoint(_written_attributes(node)) for node in functions if node.name != "__init__")

    @cached_property
    def freezes(self) -> bool:
        """Whether any file asks which parameters are trained, or changes that."""
        nodes = (node for model in self.files.values() for node in walk(model.tree))
        return any(isinstance(node, ast.Attribute) and node.attr in ("requires_grad", "requires_grad_") for node in nodes)

    @cached_property
    def plain(self) -> PlainLayers:
        """The layers that become Flax's own; none in a mirror that stays close to its source."""
        if not self.is_plain:
            return PlainLayers()
        return plain_layers(without_unreached(self.files.values()), lambda file: self.import_groups[file.file.path])

    def plain_in(self, model: FileModel) -> PlainLayers:
        """The layers that become Flax's own in a file."""
        if not self.plain.by_group:
            return self.plain
        group = self.import_groups[model.file.path]
        if group not in self._plain_of_groups:
            self._plain_of_groups[group] = replace(self.plain, kinds=self.plain.by_group.get(group, self.plain.kinds))
        return self._plain_of_groups[group]

    @cached_property
    def import_groups(self) -> dict[str, int]:
        """Path of a file → the number of the group of files that imports connect it with."""
        names = {path: (*model.bindings.values(), *model.stars) for path, model in self.files.items()}
        imports = ((path, self._file_of(dotted)) for path, every in names.items() for dotted in every)
        return connected(self.files, ((path, model.file.path) for path, model in imports if model is not None))

    def _file_of(self, dotted: str) -> FileModel | None:
        """The file that defines a dotted name, or that it is looked up in first."""
        if definition := self.resolve(dotted):
            return definition[0]
        parts = dotted.split(".")
        return next((self.modules[name] for size in range(len(parts), 0, -1) if (name := ".".join(parts[:size])) in self.modules), None)

    @cached_property
    def names_torch(self) -> bool:
        """Whether any file imports torch."""
        return any(model.names_torch for model in self.files.values())

    @cached_property
    def method_names(self) -> frozenset[str]:
        """The names of all methods that a class of the repository defines."""
        return frozenset(name for model in self.files.values() for cls in model.classes.values() for name in cls.methods)

    def _bind_stars(self, model: FileModel, bound: set[str]) -> None:
        """Add what `from module import *` binds: names of the repository under the star's module,
        others under their own package.
        """
        # Modules may star-import each other in a circle.
        if model.file.path in bound:
            return
        bound.add(model.file.path)
        for star in model.stars:
            other = self.modules.get(star)
            if other is None:
                continue
            self._bind_stars(other, bound)
            exports = self.resolver.exports(other.file)
            names = {name for name in (*other.top_names, *other.bindings) if exports.exported(name)}
            outside = {name: dotted for name, dotted in other.bindings.items() if name in names and self.resolver.resolve(dotted) is None}
            # Explicit imports come last: they win over a star.
            model.bindings = {**{name: f"{star}.{name}" for name in names}, **outside, **model.bindings}
            if exports.public is None:
                model.stars += [further for further in other.stars if further not in self.modules and further not in model.stars]
        self._bind_torch_stars(model)

    def _bind_copies(self) -> None:
        """Give functions that are copies of torch's own the names that these have."""
        copies = {(path, name): torch for path, model in self.files.items() for name, torch in torch_copies(model.functions).items()}
        names = {name for _, name in copies}
        for path, model in self.files.items():
            for name, dotted in model.bindings.items():
                definition = self.resolve(dotted) if dotted.rpartition(".")[2] in names else None
                if definition is not None and (key := (definition[0].file.path, definition[1])) in copies:
                    model.bindings[name] = copies[key]
            model.bindings |= {name: torch for (owner, name), torch in copies.items() if owner == path}

    def _bind_torch_stars(self, model: FileModel) -> None:
        """Add what `from torch.nn import *` binds of the names that the file reads: those that the tables know, else those that only it can bind."""
        stars = [star for star in reversed(model.stars) if star.partition(".")[0] in TORCH]
        unbound = global_names(model.text) - model.top_names - model.bindings.keys() if stars else ()
        for name in unbound:
            known = (dotted for star in stars if known_to_torch(dotted := f"{star}.{name}") or dotted in MODULE_BASES)
            alone = None if hasattr(builtins, name) else self.resolver.through_stars(model.file, name)
            if home := next(known, alone):
                model.bindings[name] = home

    def _handed_on(self, dotted: str) -> str:
        """What of torch a name is that a file imports and another imports from there: `pkg.compat.nn` → `torch.nn`; any other stays."""
        name = dotted
        for _ in self.modules:  # Modules may import each other's names in a circle.
            module, _, last = name.rpartition(".")
            if (file := self.modules.get(module)) is None or last not in file.bindings:
                break
            name = file.bindings[last]
        return name if name.partition(".")[0] in TORCH else dotted

    @cached_property
    def _own_names(self) -> frozenset[str]:
        """The first and last names of the repository's modules."""
        return frozenset(name for file in self.inventory.files for name in (file.module.partition(".")[0], file.module.rpartition(".")[2]))

    def _load(self, source: SourceFile) -> None:
        text = (self.inventory.root / source.path).read_text(encoding="utf-8-sig")
        # A form feed counts as a line break to `str.splitlines` and not to `ast`: columns would be
        # off.
        text = text.replace("\f", " ")
        try:
            text, moved = in_spaces(inline_mixin_bases(entries_as_attributes(listed_stars(text, self._own_names))))
            tree = ast.parse(text)
        # A file for another version of Python must not stop the rest of the repository.
        except SyntaxError:
            return
        model = FileModel(source, text, tree, moved)
        _index(model)
        self.files[source.path] = model
        self.modules[source.module] = model

    def placed(self, observations: Observations) -> Observations:
        """Observations at the places that the code has here, where indentation has moved it."""
        moved = {path: file.moved for path, file in self.files.items() if file.moved}
        return {path: moved_by(observed, moved.get(path, {})) for path, observed in observations.items()} if moved else observations

    def canonical(self, dotted: str, near: SourceFile) -> str:
        """A dotted name with the module name that its file has in the inventory: where `layers.py` is imported as `layers`,
        `pkg.layers.Block` is `layers.Block`.
        """
        parts = dotted.split(".")
        for size in range(len(parts), 0, -1):
            file = self.resolver.module(".".join(parts[:size]), near)
            if file is not None:
                return ".".join([file.module, *parts[size:]])
        return dotted

    def resolve(self, dotted: str) -> tuple[FileModel, str] | None:
        """The file and qualified name that define a dotted name, re-exports followed; the name is
        "" for the module itself.
        """
        if dotted not in self._resolved:
            definition = self.resolver.resolve(dotted)
            model = self.files.get(definition.file.path) if definition else None
            self._resolved[dotted] = (model, definition.name) if definition and model else None
        return self._resolved[dotted]

    def reads_object(self, dotted: str) -> bool:
        """Whether a dotted name goes through an object that a file assigns: `BLOCKS.build`, where the file has `BLOCKS = Registry()`."""
        definition = self.resolve(dotted.rpartition(".")[0])
        if definition is None or not definition[1]:
            return False
        file, first = definition[0], definition[1].partition(".")[0]
        return first in file.top_names and first not in file.classes and first not in file.functions

    def rebinds(self, dotted: str) -> FileModel | None:
        """The package that gives the name of one of its modules to something else, as `op/__init__.py` does to
        `op.upfirdn2d` by `from .upfirdn2d import upfirdn2d`.
        """
        definition = self.resolve(dotted) if dotted in self.modules else None
        return self.modules.get(dotted.rpartition(".")[0]) if definition and definition[1] else None

    def unfollowed(self, file: FileModel, name: str) -> str:
        """The installed package, itself in need of torch, that a name is imported from and whose
        source is out of reach; else "".
        """
        dotted = "" if name in file.top_names else file.bindings.get(name, "")
        package = dotted.partition(".")[0]
        if package in self.inventory.bound:
            return package
        return package if package in self.adopted and self.resolve(dotted) is None else ""

    def mirror(self, name: str) -> str:
        """The mirror's name of a module or package of the repository, or ""."""
        if model := self.modules.get(name):
            return model.file.target_module
        for other in self.modules.values():
            if other.file.module.startswith(f"{name}."):
                return other.file.target_module[: len(other.file.target_module) - len(other.file.module) + len(name)]
        return ""

    def mirrored(self, file: FileModel) -> dict[str, str]:
        """Packages that `import pkg` binds in a file, by the names that they have in its mirror
        (`pkg_jax`).
        """
        plain = [name for name, dotted in file.bindings.items() if name == dotted]
        return {mirror: name for name in plain if (mirror := self.mirror(name)) and mirror != name}

    def class_of(self, dotted: str) -> ClassModel | None:
        """The class of the repository that a dotted name stands for; of a function's own class the name as Python tells it (`m.f.<locals>.C`)."""
        if LOCAL in dotted:
            return self._local_class(dotted.replace(LOCAL, ""))
        definition = self.resolve(self.behind(dotted))
        return definition[0].classes.get(definition[1]) if definition else None

    def behind(self, dotted: str) -> str:
        """What a name stands for that its file binds once, to another name (`Calculation = BaseCalculation`); of all others the name itself."""
        seen = {dotted}
        while (definition := self.resolve(dotted)) and (value := definition[0].other_names.get(definition[1])):
            further = dotted_name(value, definition[0])
            if not further or further in seen:
                break
            dotted = further
            seen.add(dotted)
        return dotted

    def _local_class(self, dotted: str) -> ClassModel | None:
        parts = dotted.split(".")
        split = (size for size in range(len(parts) - 1, 0, -1) if ".".join(parts[:size]) in self.modules)
        size = next(split, 0)
        return self.modules[".".join(parts[:size])].classes.get(".".join(parts[size:])) if size else None

    @cached_property
    def only_returned(self) -> frozenset[str]:
        """Ids of the classes that the repository instantiates in `return C(…)` and nowhere else."""
        returned: set[str] = set()
        elsewhere: set[str] = set()
        for file in self.files.values():
            results = {id(node.value) for node in walk(file.tree) if isinstance(node, ast.Return)}
            for node in walk(file.tree):
                if (
                    isinstance(node, ast.Call)
                    and (dotted := dotted_name(node.func, file))
                    and (model := self.class_of(public_name(dotted)))
                ):
                    (returned if id(node) in results else elsewhere).add(model.id)
        return frozenset(returned - elsewhere)

    def bases(self, model: ClassModel) -> list[str]:
        """Dotted names of the direct bases, as far as they are plain names; of `Base[T]` that of `Base`."""
        plain = (base.value if isinstance(base, ast.Subscript) else base for base in model.node.bases)
        return [public_name(self.behind(name)) for base in plain if (name := dotted_name(base, model.file))]

    def ancestors(self, model: ClassModel) -> Iterator[ClassModel]:
        """The class and its bases within the repository, nearest first."""
        visited: set[str] = set()
        todo = [model]
        while todo:
            current = todo.pop(0)
            if current.id in visited:
                continue
            visited.add(current.id)
            yield current
            todo += [base for name in self.bases(current) if (base := self.class_of(name))]

    @cached_property
    def descendants(self) -> dict[str, list[ClassModel]]:
        """Class id → the classes of the repository that derive from it, at any depth."""
        below: dict[str, list[ClassModel]] = {}
        for file in self.files.values():
            for model in file.classes.values():
                for above in self.ancestors(model):
                    if above is not model:
                        below.setdefault(above.id, []).append(model)
        return below

    def is_mixin(self, model: ClassModel) -> bool:
        """Whether only module classes inherit from a class that is no module class itself, so that
        its `self` is a module.
        """
        below = self.descendants.get(model.id, [])
        final = [m for m in below if m.id not in self.descendants]
        return not self.is_module_class(model) and bool(final) and all(self.is_module_class(m) for m in final)

    def is_module_class(self, model: ClassModel) -> bool:
        """Whether it derives from `nn.Module` or a torch layer."""
        return any(name in MODULE_BASES or name in layers() for c in self.ancestors(model) for name in self.bases(c))

    def is_module(self, dotted: str) -> bool:
        """Whether a dotted class name is a module class of torch or of the repository."""
        if dotted in layers() or dotted in LAZY or dotted in MODULE_BASES:
            return True
        model = self.class_of(dotted)
        return bool(model and self.is_module_class(model))

    def attribute(self, model: ClassModel, name: str) -> Observed | None:
        """What `self.<name>` is, by assignment in the class or its bases."""
        for current in self.ancestors(model):
            if name in current.attributes:
                return current.attributes[name]
            # Registered by `register_buffer`, so that no assignment was seen.
            if name in current.buffers:
                return Observed(("tensor",))
        return Observed(("tensor",), ((),), ("int64",)) if name in self._inherited(model) else None

    def buffer(self, model: ClassModel, name: str) -> bool | None:
        """Whether the buffer of this name is persistent; `None` where there is no such buffer."""
        own = next((c.buffers[name] for c in self.ancestors(model) if name in c.buffers), None)
        return True if own is None and name in self._inherited(model) else own

    def _inherited(self, model: ClassModel) -> Set[str]:
        """Buffers of the torch layers among the bases that have the same name in NNX."""
        bases = {base for one in self.ancestors(model) for base in self.bases(one)}
        return BUFFERS if any(base in layers() and "running_mean" in layers()[base].params for base in bases) else frozenset()


def _written_attributes(function: ast.FunctionDef) -> Iterator[str]:
    """Attributes that a function assigns to, or to parts of, or has a method change whose name ends in an underscore."""
    for node in walk(function):
        target: ast.AST | None = None
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            target = node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            target = node.func.value
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Attribute):
            yield target.attr


def unfollowed(name: str, package: str) -> str:
    """The message for a name whose source cannot be followed."""
    return f"{name} comes from {package}, which needs torch, and its source cannot be followed"


def is_jax(file: FileModel) -> bool:
    """Whether a file is JAX code already: it imports jax or flax, and nothing of torch."""
    roots = {dotted.partition(".")[0] for dotted in file.bindings.values()}
    return bool(roots & {"jax", "flax"}) and "torch" not in roots


def dotted_name(node: ast.expr, file: FileModel) -> str:
    """The dotted name that a chain of attributes stands for, or ""."""
    if isinstance(node, ast.Subscript):
        return dotted_name(node.value, file)
    if isinstance(node, ast.Name):
        return file.bindings.get(node.id) or file.own(node.id)
    if isinstance(node, ast.Attribute) and (base := dotted_name(node.value, file)):
        return f"{base}.{node.attr}"
    return ""


def _self_calls(node: ast.AST, method: str) -> Iterator[ast.Call]:
    for child in walk(node):
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr == method:
            yield child


def _index(model: FileModel) -> None:
    imports = Imports(model.tree, model.file)
    model.bindings = dict(imports.names)
    model.stars = list(imports.stars)
    for statement in _top_level(model.tree.body):
        if (alias := casting_alias(statement, model.bindings)) is not None:
            model.bindings |= alias
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            model.top_names.add(statement.name)
        elif not isinstance(statement, (ast.Import, ast.ImportFrom)):
            model.top_names |= {n.id for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    _definitions(model, model.tree.body, "")
    for name in model.top_names & set(model.bindings):
        # Both an import and a definition: `try: import … except ImportError: def …`. The definition
        # runs under JAX, unless the tables know the imported name.
        if (name in model.classes or name in model.functions) and not known_to_torch(model.bindings[name]):
            del model.bindings[name]
        else:
            model.top_names.discard(name)


def casting_alias(statement: ast.stmt, bindings: Mapping[str, str]) -> dict[str, str] | None:
    """Name → dotted name, of a statement that calls torch's automatic casting by another name: `autocast = torch.cuda.amp.autocast`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value):
            root, _, rest = (dotted_text(value) or "").partition(".")
            dotted = f"{bindings.get(root, '')}.{rest}"
            return {name: dotted} if dotted in AUTOCAST else None
    return None


AUTOCAST = frozenset({"torch.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast", "torch.cpu.amp.autocast"})
"""torch's automatic casting."""


def known_to_torch(dotted: str) -> bool:
    """Whether the tables know a torch name. Where a file tries its import first, the fallback of
    the file is dead code.
    """
    return dotted in layers() or dotted in ops() or dotted in _torch_modules() or dotted in AUTOCAST


@cache
def _torch_modules() -> frozenset[str]:
    names = (name.rpartition(".")[0] for name in (*layers(), *ops()))
    return frozenset(name for name in names if name.split(".")[0] == "torch" and not name.startswith("torch.Tensor"))


def _definitions(model: FileModel, body: list[ast.stmt], prefix: str) -> None:
    for statement in _top_level(body):
        if isinstance(statement, ast.ClassDef):
            name = prefix + statement.name
            model.classes[name] = ClassModel(model, name, statement)
            _definitions(model, statement.body, f"{name}.")
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            model.functions[prefix + statement.name] = statement
            _definitions(model, statement.body, f"{prefix}{statement.name}.")


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a block, those inside `if`, `try` and `with` included."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for name in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []):
                yield from _top_level(handler.body)
        else:
            yield statement
