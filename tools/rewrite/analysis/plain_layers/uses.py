"""Which layers of torch a repository uses in no other way than Flax's own layers can be used.

What decides is the text of all files alone, so that each unit of a repository has the same answer. A layer is plain where it is only constructed and
called, and where the attributes that are read have a spelling in NNX. Where it is not known of which layer an attribute is read, no layer that has it
is plain.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from migrate_agent.tools.rewrite.analysis.plain_layers.names import UNKNOWN, ParsedFile, dotted, kinds_by_name, last_name, parts
from migrate_agent.tools.rewrite.analysis.plain_layers.ties import EMBEDDING, Tie, ties
from migrate_agent.tools.rewrite.tables.registry import layers

HARMLESS_UTILITIES = ("torch.nn.utils.rnn", "torch.nn.utils.clip_grad")
"""Below `torch.nn.utils`, what does not replace the parameters of a layer."""
SURGERY = ("torch.nn.utils", "torch.ao", "torch.quantization", "torch.fx", "torch.func", "torch.nn.quantized")
"""Modules that put other parameters, or other layers, in the place of a layer's own."""
GRADIENTS = frozenset({"requires_grad", "requires_grad_", "grad", "register_hook", "is_leaf"})
"""What is asked of a parameter, and not of its values."""
HANDED_ON = (ast.arguments, ast.Call, ast.keyword, ast.IfExp, ast.BoolOp, ast.Assign, ast.AnnAssign)
"""Where a class stands that is called elsewhere: that constructs the vendored class, which derives from Flax's."""
FAMILIES = (
    ("nnx.Embed", ("torch.nn.Embedding",)),
    ("nnx.Conv", ("torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d", "torch.nn.modules.conv._ConvNd")),
    ("nnx.BatchNorm", ("torch.nn.BatchNorm", "torch.nn.SyncBatchNorm", "torch.nn.InstanceNorm", "torch.nn.modules.batchnorm.")),
)
"""Classes of Flax that stand for several of torch, or that vendored classes of other layers derive from, with the names that these begin with."""
CONTAINERS = frozenset({"torch.nn.ModuleDict"})
LOOKUPS = frozenset({"getattr", "setattr", "hasattr", "delattr"})


@dataclass(frozen=True)
class PlainLayers:
    """`kinds`: dotted names of the layers that may be those of Flax. `shared`: attributes that hold layers whose variable another one shares.
    `ties`: heads that are the table of an embedding. `by_name`: attribute → the layers that the repository keeps under it."""

    kinds: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    ties: tuple[Tie, ...] = ()
    by_name: Mapping[str, frozenset[str]] = field(default_factory=dict)


def plain_layers(files: Collection[ParsedFile]) -> PlainLayers:
    """The layers of a repository that are used plainly."""
    by_name = kinds_by_name(files)
    tied = ties(files, by_name)
    plain = _plain_but_for(files, by_name, tied)
    # A head can be a method of its table only where that is Flax's own.
    return plain if not tied or EMBEDDING in plain.kinds else _plain_but_for(files, by_name, ())


def _plain_but_for(files: Collection[ParsedFile], by_name: Mapping[str, frozenset[str]], tied: tuple[Tie, ...]) -> PlainLayers:
    """The layers that are used plainly, where the statements of these ties are not in the mirror."""
    candidates = frozenset(name for name, row in layers().items() if row.plain)
    search = _Search(candidates, by_name, frozenset(id(tie.said) for tie in tied))
    for file in files:
        _Reader(file, search).visit(file.tree)
    for kind, beginnings in FAMILIES:
        family = {name for name in search.named if name.startswith(beginnings)}
        tested = {name for name in search.tested if layers()[name].plain_class == kind}
        if (tested and len(family) > 1) or not family <= candidates:
            search.refuse(family)
    return PlainLayers(candidates - search.refused, frozenset(search.shared), tied, by_name)


@dataclass
class _Search:
    candidates: frozenset[str]
    by_name: Mapping[str, frozenset[str]]
    gone: frozenset[int]
    """Statements that are not in the mirror."""
    named: set[str] = field(default_factory=set)
    """All names of torch that the repository has."""
    tested: set[str] = field(default_factory=set)
    """Layers that it asks for by `isinstance`, or names in an annotation."""
    refused: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def refuse(self, kinds: Iterable[str]) -> None:
        """No layer of these kinds is plain; none at all where a kind is unknown."""
        every = set(kinds)
        self.refused |= self.candidates if UNKNOWN in every else every & self.candidates

    def having(self, attribute: str) -> set[str]:
        """The layers that have an attribute which Flax spells otherwise, or not at all."""
        return {name for name in self.candidates if attribute in {**layers()[name].plain_reads, **dict.fromkeys(layers()[name].not_plain)}}


class _Reader(ast.NodeVisitor):
    """Refuses the layers of one file that are used in other ways than Flax's can be."""

    def __init__(self, file: ParsedFile, search: _Search) -> None:
        self.file, self.search = file, search
        self.guards: list[Mapping[str, frozenset[str]]] = []
        self.parents: list[ast.AST] = []
        self.derived = {
            name
            for node in ast.walk(file.tree)
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            if (name := dotted(file, base)) in search.candidates
        }
        search.refuse(self.derived)
        self.functions = {node.name for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef)}

    def visit(self, node: ast.AST) -> None:
        if id(node) in self.search.gone:
            return
        self.parents.append(node)
        if isinstance(node, (ast.If, ast.IfExp)):
            self._branch(node)
        else:
            self._look(node)
            self.generic_visit(node)
        self.parents.pop()

    def _branch(self, node: ast.If | ast.IfExp) -> None:
        self.visit(node.test)
        self.guards.append(self._tested(node.test))
        for part in node.body if isinstance(node, ast.If) else [node.body]:
            self.visit(part)
        self.guards.pop()
        for part in node.orelse if isinstance(node, ast.If) else [node.orelse]:
            self.visit(part)

    def _tested(self, test: ast.expr) -> dict[str, frozenset[str]]:
        """Name → the layers that it is one of where `isinstance` holds."""
        tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        kinds = {}
        for one in tests:
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "isinstance" and len(one.args) == 2:
                names = frozenset(dotted(self.file, each) for each in parts(one.args[1]))
                kinds[ast.unparse(one.args[0])] = names if names <= layers().keys() else frozenset({UNKNOWN})
        return kinds

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, ast.Attribute):
            self._attribute(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            self._reference(node)
            self._container(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOKUPS:
            words = {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
            for word in map(str, words):
                self.search.refuse(self.search.having(word))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            if not all(self._is_known_class(one) for argument in node.args[1:] for one in parts(argument)):
                self.search.refuse({UNKNOWN})
        elif isinstance(node, ast.Compare):
            # A class is compared, and Flax's is another one than the vendored.
            sides = [side for side in (node.left, *node.comparators) if isinstance(side, (ast.Call, ast.Attribute))]
            if any(ast.unparse(side).startswith("type(") or ast.unparse(side).endswith(".__class__") for side in sides):
                self.search.refuse({UNKNOWN})
        elif isinstance(node, ast.Assign):
            self._sharing(node)
        elif isinstance(node, ast.Call):
            self._options(node)

    def _reference(self, node: ast.Name | ast.Attribute) -> None:
        """A layer as a value: only what constructs it, or asks for it, is plain."""
        name = dotted(self.file, node)
        if any(name == module or name.startswith(f"{module}.") for module in SURGERY) and not name.startswith(HARMLESS_UTILITIES):
            # The module's own name, on the way to what is harmless in it.
            if name not in SURGERY or not isinstance(self._parent(), ast.Attribute):
                self.search.refuse({UNKNOWN})
        self.search.named |= {name} if name.startswith("torch.nn.") else set()
        if name not in self.search.candidates:
            return
        parent = self._parent()
        called = isinstance(parent, ast.Call) and parent.func is node
        asked = self._is_asked_for(node)
        self.search.tested |= {name} if asked else set()
        if (asked and not layers()[name].plain_class) or not (called or asked or isinstance(parent, HANDED_ON)):
            self.search.refuse({name})

    def _options(self, node: ast.Call) -> None:
        """Classes that are handed on stand for Flax's own, which have not all of torch's options, and one size."""
        func = node.func
        of_name = isinstance(func, ast.Name) and func.id not in self.file.bindings and func.id not in self.file.classes
        if last_name(func) in self.functions or not (of_name or (isinstance(func, ast.Attribute) and self._is_own(func.value))):
            return
        words = {word.arg for word in node.keywords}
        several = bool(node.args) and isinstance(node.args[0], (ast.Tuple, ast.List))
        rows = {name: layers()[name] for name in self.search.candidates}
        self.search.refuse(name for name, row in rows.items() if words & set(row.long_options) or (several and row.short))

    def _container(self, node: ast.Name | ast.Attribute) -> None:
        """A container is only asked for what it holds: whoever goes through it, or is handed it, may see another order."""
        holds = self.search.by_name.get(last_name(node), frozenset()) & CONTAINERS
        parent = self._parent()
        opened = isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Subscript) and parent.value is node)
        if holds and isinstance(node.ctx, ast.Load) and not opened:
            self.search.refuse(holds)

    def _is_asked_for(self, node: ast.AST) -> bool:
        """Whether a class stands in an `isinstance` test or an annotation."""
        for outer, inner in zip(reversed(self.parents[:-1]), reversed(self.parents), strict=False):
            if isinstance(outer, ast.Call):
                return isinstance(outer.func, ast.Name) and outer.func.id in ("isinstance", "issubclass") and inner is outer.args[-1]
            if isinstance(outer, (ast.arg, ast.AnnAssign)) and outer.annotation is inner:
                return True
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) and outer.returns is inner:
                return True
        return False

    def _is_known_class(self, node: ast.expr) -> bool:
        """Whether a class in an `isinstance` test is written there by its own name."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        own = {name for name in self.file.classes if "." not in name}
        return isinstance(root, ast.Name) and (root.id in self.file.bindings or root.id in own or hasattr(builtins, root.id))

    def _parent(self) -> ast.AST | None:
        return self.parents[-2] if len(self.parents) > 1 else None

    def _attribute(self, node: ast.Attribute) -> None:
        if not self.search.having(node.attr) or self._is_own(node.value) or dotted(self.file, node):
            return
        kinds = self._kinds(node.value) or frozenset({UNKNOWN})
        affected = kinds & self.search.candidates
        having = self.search.having(node.attr)
        if UNKNOWN in kinds or not having >= affected:
            self.search.refuse(having)
        elif affected and (kinds - affected or not self._is_spelled(node, affected)):
            self.search.refuse(affected)

    def _is_own(self, node: ast.expr) -> bool:
        """Whether this is the instance of a class of the repository, which has the attribute itself."""
        return isinstance(node, ast.Name) and node.id in ("self", "cls", "ctx")

    def _kinds(self, node: ast.expr) -> frozenset[str]:
        text = ast.unparse(node)
        for guard in reversed(self.guards):
            if text in guard:
                return guard[text]
        return self.search.by_name.get(last_name(node), frozenset())

    def _is_spelled(self, node: ast.Attribute, kinds: frozenset[str]) -> bool:
        """Whether this use of an attribute has one spelling for all these layers."""
        spellings = {layers()[kind].plain_reads.get(node.attr, "") for kind in kinds}
        if len(spellings) != 1 or "" in spellings:
            return False
        outer = list(reversed(self.parents[:-1]))
        data = outer[0] if isinstance(outer[0], ast.Attribute) and outer[0].attr == "data" else None
        user = outer[1] if data is not None else outer[0]
        stored = not isinstance((data or node).ctx, ast.Load)
        if not any(node.attr in layers()[kind].params for kind in kinds):
            return not stored
        if isinstance(user, ast.Assign):
            # `a.weight = b.weight` is read by `_sharing`; `.data` is a new value of the variable.
            return (stored and data is not None) or (data is None and self._is_shared_by(user))
        if stored:
            return False
        if isinstance(user, ast.Attribute):
            return user.attr not in GRADIENTS
        # Whoever else is handed the parameter may keep it, or write to it.
        return isinstance(user, ast.BinOp) or (isinstance(user, ast.Call) and dotted(self.file, user.func).startswith("torch."))

    def _is_shared_by(self, node: ast.Assign) -> bool:
        """Whether another layer is given the variable: `a.weight = b.weight`."""
        targets = [target for target in node.targets if isinstance(target, ast.Attribute) and not self._is_own(target.value)]
        return isinstance(node.value, ast.Attribute) and any(self.search.having(target.attr) for target in targets)

    def _sharing(self, node: ast.Assign) -> None:
        """`a.weight = b.weight`: what takes the other's variable is no plain layer, and the one that it is taken from keeps its layout's mark."""
        for target in node.targets:
            if not isinstance(target, ast.Attribute) or not self.search.having(target.attr) or self._is_own(target.value):
                continue
            self.search.refuse(self._kinds(target.value) or {UNKNOWN})
            if isinstance(node.value, ast.Attribute) and isinstance(node.value.value, ast.Attribute):
                self.search.shared.add(node.value.value.attr)
            elif isinstance(node.value, ast.Attribute):
                self.search.refuse(self._kinds(node.value.value) or {UNKNOWN})
