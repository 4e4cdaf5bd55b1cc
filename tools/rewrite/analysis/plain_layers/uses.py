"""Which layers of torch a repository uses in no other way than Flax's own layers can be used.

What decides is the text of all files alone, so that each unit of a repository has the same answer. A layer is plain where it is only constructed and
called, and where the attributes that are read have a spelling in NNX. Where it is not known of which layer an attribute is read, no layer that has it
is plain. What a class does with layers of its own decides for the files alone that imports connect with its file.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from migrate_agent.tools.rewrite.analysis.plain_layers.class_names import name_test, owner_in
from migrate_agent.tools.rewrite.analysis.plain_layers.names import (
    OTHER,
    REPARAMETRIZATIONS,
    UNKNOWN,
    LayersByName,
    ParsedFile,
    bindings_of,
    dotted,
    last_name,
    layers_by_name,
    parts,
)
from migrate_agent.tools.rewrite.analysis.plain_layers.ties import EMBEDDING, Tie, ties
from migrate_agent.tools.rewrite.tables.registry import is_repeatable, layers
from migrate_agent.tools.rewrite.tables.signatures import parse_signature
from migrate_agent.tools.scan.nodes import walk

HARMLESS_UTILITIES = (
    "torch.fx.wrap",
    "torch.nn.utils.rnn",
    "torch.nn.utils.clip_grad",
    "torch.nn.utils.remove_",
    "torch.nn.utils.parametrize.remove_",
)
"""Of the modules below, what does not replace the parameters of a layer, or only those that another one has replaced."""
SURGERY = ("torch.nn.utils", "torch.ao", "torch.quantization", "torch.fx", "torch.func", "torch.nn.quantized")
"""Modules that put other parameters, or other layers, in the place of a layer's own."""
PARAMETRISED = frozenset(
    f"torch.nn.{name}" for name in ("Linear", *(f"{conv}{n}d" for conv in ("Conv", "ConvTranspose") for n in (1, 2, 3)))
)
"""Layers of Flax's own that read their kernel as `kernel[...]` when they are called, so that it may be computed from other parameters."""
GRADIENTS = frozenset({"requires_grad", "requires_grad_", "grad", "register_hook", "is_leaf"})
"""What is asked of a parameter, and not of its values."""
PURE = ("torch.nn.functional.", "torch.matmul", "torch.mm", "torch.bmm", "torch.einsum", "torch.cdist", "einops.")
"""Functions that only read what they are handed."""
ARRAY_METHODS = frozenset("copy_ lerp_ add_ sub_ mul_ div_ matmul mm".split())
"""Methods of an array that only read what they are handed."""
FILLS = frozenset("normal_ uniform_ trunc_normal_ zeros_ ones_ constant_ zero_ fill_".split())
"""What gives all elements of a parameter values of one kind, whatever its layout."""
FAN_FILLS: Mapping[str, tuple[str, ...]] = {
    "xavier_normal_": (),
    "xavier_uniform_": (),
    "kaiming_normal_": ("a", "mode", "nonlinearity"),
    "kaiming_uniform_": ("a", "mode", "nonlinearity"),
}
"""Fills by the fans of a weight that JAX has too, with the options that it can say."""
METHODS = frozenset({"reset_parameters", "_conv_forward"})
"""Attributes of layers that are called; any other that is called belongs to something else."""
HANDED_ON = (ast.arguments, ast.Call, ast.keyword, ast.IfExp, ast.BoolOp, ast.Assign, ast.AnnAssign, ast.Tuple, ast.List)
"""Where a class stands that is called elsewhere: that constructs the vendored class, which derives from Flax's."""
FAMILIES = (
    ("nnx.Embed", ("torch.nn.Embedding",)),
    ("nnx.Conv", ("torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d", "torch.nn.modules.conv._ConvNd")),
    ("nnx.ConvTranspose", ("torch.nn.ConvTranspose", "torch.nn.modules.conv._ConvTransposeNd", "torch.nn.modules.conv._ConvNd")),
    ("nnx.BatchNorm", ("torch.nn.BatchNorm", "torch.nn.SyncBatchNorm", "torch.nn.InstanceNorm", "torch.nn.modules.batchnorm.")),
)
"""Classes of Flax that stand for several of torch, or that vendored classes of other layers derive from, with the names that these begin with."""
CONTAINERS = frozenset({"torch.nn.ModuleDict"})
SEQUENTIAL = "torch.nn.Sequential"
MODULE_LIST = "torch.nn.ModuleList"
GOES_THROUGH = frozenset("len list tuple enumerate reversed zip iter".split())
"""Functions of Python that go through what they are handed."""
LIST_METHODS = frozenset("append extend insert pop".split())
OUTPUT_SIZE = frozenset(f"torch.nn.ConvTranspose{n}d" for n in (1, 2, 3))
"""Layers that may be called with the size of their result, which those of Flax do not take."""
SEVERAL = frozenset(f"torch.nn.{name}" for name in "LSTM GRU RNN LSTMCell MultiheadAttention".split())
"""Layers that give tuples, which `nnx.Sequential` spreads over the arguments of the next."""
LOOKUPS = frozenset({"getattr", "setattr", "hasattr", "delattr"})


WITHOUT_LAYERS = sys.stdlib_module_names | {
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "matplotlib",
    "PIL",
    "cv2",
    "yaml",
    "tqdm",
    "typing_extensions",
}
"""Packages that hand on no class of torch."""
OF_MODULES = frozenset(
    """training parameters named_parameters modules named_modules children named_children buffers named_buffers apply train eval to cuda cpu half float
    double bfloat16 type state_dict load_state_dict register_buffer register_parameter register_module add_module requires_grad_ zero_grad forward
    extra_repr get_parameter get_submodule get_buffer share_memory register_forward_hook register_forward_pre_hook register_full_backward_hook
    register_backward_hook compile to_empty xpu append extend insert pop keys values items clear update""".split()
)
"""Attributes of every module of torch, and of its containers."""


@cache
def layer_attributes() -> frozenset[str]:
    """The attributes that a layer of torch may have: what it is constructed with, what it holds, what every module has, and private ones."""
    rows = layers().values()
    named = (name for row in rows for names in (row.params, row.reads, row.plain_reads, row.not_plain) for name in names)
    return OF_MODULES.union(named, METHODS, (name for row in rows for name in parse_signature(row.signature).names))


def asked_for(*trees: ast.AST) -> Mapping[str, frozenset[str]]:
    """Expression → the attributes that are read of it; of `self.config.optim` as of `config.optim` too."""
    asked: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, (ast.Name, ast.Attribute)):
            text = ast.unparse(node.value)
            for name in {text, text.removeprefix("self.")} if text.count(".") > 1 else {text}:
                asked.setdefault(name, set()).add(node.attr)
    return {owner: frozenset(names) for owner, names in asked.items()}


@dataclass(frozen=True)
class PlainLayers:
    """`kinds`: dotted names of the layers that may be those of Flax in all files. `by_group`: those that may be so in the files of one group.
    `shared`: attributes that hold layers whose variable another one shares. `ties`: heads that are the table of an embedding. `by_name`: attribute
    → the layers that the repository keeps under it. `mentioned`: all layers of torch that it names, and
    `own_classes` the classes that are its own: name → whether its instances may have a weight or bias."""

    kinds: frozenset[str] = frozenset()
    by_group: Mapping[int, frozenset[str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    ties: tuple[Tie, ...] = ()
    by_name: Mapping[str, frozenset[str]] = field(default_factory=dict)
    mentioned: frozenset[str] = frozenset()
    own_classes: Mapping[str, bool] = field(default_factory=dict)


def plain_layers(files: Collection[ParsedFile], group_of: Callable[[Any], int] = lambda file: 0) -> PlainLayers:
    """The layers of a repository that are used plainly. Files of one group are connected by imports."""
    named = layers_by_name(files)
    tied = ties(files, named.by_attribute())
    plain = _plain_but_for(files, named, tied, group_of)
    # A head can be a method of its table only where that is Flax's own.
    return plain if not tied or EMBEDDING in plain.kinds else _plain_but_for(files, named, (), group_of)


def _plain_but_for(
    files: Collection[ParsedFile], named: LayersByName, tied: tuple[Tie, ...], group_of: Callable[[Any], int]
) -> PlainLayers:
    """The layers that are used plainly, where the statements of these ties are not in the mirror."""
    candidates = frozenset(name for name, row in layers().items() if row.plain)
    mentioned = frozenset(
        name
        for file in files
        for node in walk(file.tree)
        if isinstance(node, (ast.Name, ast.Attribute)) and (name := dotted(file, node)) in layers()
    )
    search = _Search(candidates, named, frozenset(id(tie.said) for tie in tied), mentioned, asked_for(*(file.tree for file in files)))
    for file in files:
        _Reader(file, search, group_of(file)).visit(file.tree)
    search.refuse(search.exact & search.odd)
    for kind, beginnings in FAMILIES:
        family = {name for name in search.named if name.startswith(beginnings)}
        tested = [{name for name in one if layers()[name].plain_class == kind} for one in search.tested]
        if any(one and one != family for one in tested) or not family <= candidates:
            search.refuse(family)
    search.refuse(kind for kinds, others in search.beside if others & search.changed for kind in kinds)
    search.refuse_read_elsewhere()
    kinds = {group: candidates - search.refused_in(group) for group in {group_of(file) for file in files}}
    everywhere = candidates.intersection(*kinds.values())
    return PlainLayers(everywhere, kinds, frozenset(search.shared), tied, named.by_attribute(), mentioned, named.having_parameters)


def _own_variable(kind: str, attribute: str) -> bool:
    """Whether the helper for a layer keeps a parameter as a variable of its own, with a name that `weight_of` knows."""
    return kind in layers() and layers()[kind].params.get(attribute, "").endswith((".kernel", ".scale", ".embedding"))


def _is_type_of(node: ast.expr) -> bool:
    """Whether an expression is `type(…)` or `….__class__`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1
    return is_call or (isinstance(node, ast.Attribute) and node.attr == "__class__")


def _is_written_out(call: ast.Call) -> bool:
    """Whether a call makes one of Flax's own layers for certain: all arguments are written out, none of them a dtype."""
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        word.arg in (None, "device", "dtype") for word in call.keywords
    ):
        return False
    return all(is_repeatable(argument) for argument in (*call.args, *(word.value for word in call.keywords)))


def _left_unless(node: ast.AST) -> ast.expr | None:
    """What holds after `if not …: continue`, or another way to leave the block; None for any other statement."""
    match node:
        case ast.If(
            test=ast.UnaryOp(op=ast.Not(), operand=test), body=[*_, ast.Continue() | ast.Return() | ast.Raise() | ast.Break()], orelse=[]
        ):
            return test
    return None


def _is_one_of(node: ast.expr, value: ast.expr) -> bool:
    """Whether a value is this expression, by way of conditions alone."""
    if isinstance(value, ast.IfExp):
        return _is_one_of(node, value.body) or _is_one_of(node, value.orelse)
    return value is node


@dataclass
class _Search:
    candidates: frozenset[str]
    by_name: LayersByName
    gone: frozenset[int]
    """Statements that are not in the mirror."""
    mentioned: frozenset[str] = frozenset()
    asked_for: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Expression of any file → the attributes that are read of it (`asked_for`)."""
    changed: set[str] = field(default_factory=set)
    """Layers whose parameters another function computes."""
    beside: list[tuple[set[str], set[str]]] = field(default_factory=list)
    """Layers whose weights a statement fills, and those of the helpers whose weights it fills too."""
    named: set[str] = field(default_factory=set)
    """All names of torch that the repository has."""
    tested: list[set[str]] = field(default_factory=list)
    """Layers that one `isinstance`, comparison or annotation asks for."""
    exact: set[str] = field(default_factory=set)
    """Layers whose class is compared by `type(…)`, without classes that derive from them."""
    odd: set[str] = field(default_factory=set)
    """Layers that are also made in other ways than by a call that writes out its arguments: that may be the vendored ones."""
    alike: list[set[str]] = field(default_factory=list)
    """Layers whose weights one statement fills: all of them are Flax's own, or none."""
    refused: set[str] = field(default_factory=set)
    within: dict[int, set[str]] = field(default_factory=dict)
    """Group of files → layers that are refused there alone."""
    read: set[tuple[int, str]] = field(default_factory=set)
    """Groups of files, and the layers that they read attributes of which may be made in another group."""
    shared: set[str] = field(default_factory=set)

    def refuse(self, kinds: Iterable[str]) -> None:
        """No layer of these kinds is plain; none at all where a kind is unknown."""
        every = set(kinds)
        self.refused |= self.candidates if UNKNOWN in every else every & self.candidates

    def refuse_within(self, group: int, kinds: Collection[str]) -> None:
        """No layer of these kinds is plain in the files of a group; in no file where a kind is unknown."""
        if UNKNOWN in kinds:
            self.refuse(kinds)
        else:
            self.within.setdefault(group, set()).update(self.candidates.intersection(kinds))

    def refuse_read_elsewhere(self) -> None:
        """Refuse everywhere what one group refuses and another may read."""
        for group, kinds in self.within.items():
            self.refuse(kinds & {kind for other, kind in self.read if other != group})

    def refused_in(self, group: int) -> set[str]:
        """What is not plain in the files of a group."""
        refused = self.refused | self.within.get(group, set())
        while split := [kinds for kinds in self.alike if kinds & refused and kinds - refused]:
            refused = refused.union(*split)
        return refused

    def having(self, attribute: str) -> set[str]:
        """The layers that have an attribute which Flax spells otherwise, or not at all."""
        return {name for name in self.candidates if attribute in {**layers()[name].plain_reads, **dict.fromkeys(layers()[name].not_plain)}}


class _Reader(ast.NodeVisitor):
    """Refuses the layers of one file that are used in other ways than Flax's can be."""

    def __init__(self, file: ParsedFile, search: _Search, group: int) -> None:
        self.file, self.search, self.group = file, search, group
        self.guards: list[Mapping[str, frozenset[str]]] = []
        self.parents: list[ast.AST] = []
        self.derived = {
            name
            for node in ast.walk(file.tree)
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            if (name := dotted(file, base)) in search.candidates - {SEQUENTIAL}
        }
        search.refuse_within(group, self.derived)
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

    def generic_visit(self, node: ast.AST) -> None:
        for _, value in ast.iter_fields(node):
            outer = len(self.guards)
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    self.visit(part)
                    self.guards += [self._tested(test)] if (test := _left_unless(part)) is not None else []
            del self.guards[outer:]

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
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            either = [self._tested(one) for one in test.values]
            return {name: frozenset().union(*(one[name] for one in either)) for name in either[0] if all(name in one for one in either)}
        tests = test.values if isinstance(test, ast.BoolOp) else [test]
        kinds: dict[str, frozenset[str]] = {}
        for one in tests:
            if isinstance(one, ast.BoolOp):
                kinds |= self._tested(one)
            elif (asked := name_test(one)) is not None and (owner := owner_in(asked, self._function())) is not None:
                if named := asked.layers(self.search.mentioned, self.search.by_name.having_parameters, self._function()):
                    kinds[ast.unparse(owner)] = named
                    self.search.tested.append(set(named & self.search.candidates))
            elif isinstance(one, ast.Compare) and len(one.ops) == 1 and isinstance(one.ops[0], (ast.Eq, ast.Is, ast.In)):
                if isinstance(one.left, ast.Call) and _is_type_of(one.left) and one.left.args:
                    kinds[ast.unparse(one.left.args[0])] = self._named_layers(one.comparators[0])
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "isinstance" and len(one.args) == 2:
                kinds[ast.unparse(one.args[0])] = self._named_layers(one.args[1])
        return kinds

    def _function(self) -> ast.FunctionDef | None:
        return next((one for one in reversed(self.parents) if isinstance(one, ast.FunctionDef)), None)

    def _named_layers(self, classes: ast.expr) -> frozenset[str]:
        names = frozenset(dotted(self.file, each) or last_name(each) for each in parts(classes))
        classes_here = {name for name in names if name.rpartition(".")[2] in self.search.by_name.by_class_name}
        others = names - classes_here
        return (others | {OTHER} if classes_here else others) if others <= layers().keys() else frozenset({UNKNOWN})

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, ast.Attribute):
            self._attribute(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            self._reference(node)
            self._container(node)
            self._sequential(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOKUPS:
            words = {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
            for word in map(str, words):
                self.search.refuse(self.search.having(word))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            if not all(self._is_known_class(one) for argument in node.args[1:] for one in parts(argument)):
                self.search.refuse({UNKNOWN})
        elif isinstance(node, ast.Compare):
            self._compared(node)
        elif isinstance(node, ast.Assign):
            self._sharing(node)
        elif isinstance(node, ast.Call):
            self._options(node)
            self._elements(node)
            self._output_size(node)

    def _compared(self, node: ast.Compare) -> None:
        """Classes that are compared: Flax's is another one than the vendored, so that both must be known, and each layer be one of them."""
        sides = [node.left, *node.comparators]
        others = [side for side in sides if not _is_type_of(side)]
        if len(others) == len(sides):
            return
        classes = [part for side in others for part in parts(side)]
        if len(others) != len(sides) - 1 or not all(self._is_known_class(part) for part in classes):
            self.search.refuse({UNKNOWN})
        self.search.exact |= {dotted(self.file, part) for part in classes} & self.search.candidates

    def _reference(self, node: ast.Name | ast.Attribute) -> None:
        """A layer as a value: only what constructs it, or asks for it, is plain."""
        name = dotted(self.file, node)
        if any(name == module or name.startswith(f"{module}.") for module in SURGERY) and not name.startswith(HARMLESS_UTILITIES):
            # The module's own name, on the way to what is harmless in it.
            if name not in SURGERY or not isinstance(self._parent(), ast.Attribute):
                changed = self._changed_by(name, node)
                self.search.changed |= changed
                if not changed <= PARAMETRISED | {OTHER}:
                    self._refuse(changed, parent.args[0] if isinstance(parent := self._parent(), ast.Call) and parent.args else None)
        self.search.named |= {name} if name.startswith("torch.nn.") else set()
        if name not in self.search.candidates:
            return
        parent = self._parent()
        called = isinstance(parent, ast.Call) and parent.func is node
        is_asked = self._is_asked_for(node)
        if is_asked:
            self.search.tested.append({dotted(self.file, part) for part in self._asked_together(node)} & self.search.candidates)
        self.search.odd |= {name} if not is_asked and not (called and isinstance(parent, ast.Call) and _is_written_out(parent)) else set()
        if isinstance(parent, ast.ClassDef):
            self.search.refuse_within(self.group, {name})
        elif (is_asked and not layers()[name].plain_class) or not (called or is_asked or isinstance(parent, HANDED_ON)):
            self.search.refuse({name})

    def _changed_by(self, name: str, node: ast.Name | ast.Attribute) -> set[str]:
        """The layers that a function which puts other parameters into them is called with, under its own name or one that it is bound to."""
        parent = self._parent()
        if not f"{name}.".startswith(REPARAMETRIZATIONS):
            return {UNKNOWN}
        if isinstance(parent, ast.Attribute):
            return set()  # the module's name, before that of its function
        if isinstance(parent, ast.Call) and parent.func is node:
            return set(self._kinds(parent.args[0])) if parent.args else {UNKNOWN}
        names = {
            target if isinstance(target, str) else last_name(target)
            for target, value in bindings_of(self.file.tree)
            if _is_one_of(node, value)
        }
        calls = [call for call in ast.walk(self.file.tree) if isinstance(call, ast.Call) and last_name(call.func) in names]
        if not names or not all(call.args for call in calls):
            return {UNKNOWN}
        return {kind for call in calls for kind in self.search.by_name.of(self.file, call.args[0])}

    def _options(self, node: ast.Call) -> None:
        """Classes that are handed on stand for Flax's own, which have not all of torch's options, and one size."""
        func = node.func
        of_name = isinstance(func, ast.Name) and func.id not in self.file.bindings and func.id not in self.file.classes
        of_python = of_name and hasattr(builtins, last_name(func))
        if (
            last_name(func) in self.functions
            or of_python
            or not (of_name or (isinstance(func, ast.Attribute) and self._is_own(func.value)))
        ):
            return
        kinds = self.search.by_name.classes_of(self.file, func)
        words = {word.arg for word in node.keywords}
        several = bool(node.args) and isinstance(node.args[0], (ast.Tuple, ast.List))
        rows = {name: layers()[name] for name in self.search.candidates if name in kinds or UNKNOWN in kinds}
        self.search.refuse(name for name, row in rows.items() if words & set(row.long_options) or (several and row.short))

    def _container(self, node: ast.Name | ast.Attribute) -> None:
        """A container is only asked for what it holds: whoever goes through it, or is handed it, may see another order."""
        holds = self.search.by_name.of(self.file, node) & CONTAINERS
        parent = self._parent()
        opened = isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Subscript) and parent.value is node)
        if holds and isinstance(node.ctx, ast.Load) and not opened:
            self.search.refuse(holds)

    def _sequential(self, node: ast.Name | ast.Attribute) -> None:
        """A sequence of layers is called, indexed and gone through; a part of it, or what may also be another container, is not Flax's. Nor is one that
        may be called with a tuple, which Flax's spreads over the arguments of its layers."""
        kinds = self.search.by_name.of(self.file, node)
        parent = self._parent()
        if SEQUENTIAL not in kinds or not isinstance(node.ctx, ast.Load):
            return
        indexed = isinstance(parent, ast.Subscript) and parent.value is node
        through = isinstance(parent, (ast.For, ast.comprehension, ast.Starred)) or (
            isinstance(parent, ast.Call) and node in parent.args and last_name(parent.func) in GOES_THROUGH
        )
        part = isinstance(parent, ast.Subscript) and (isinstance(parent.slice, ast.Slice) or not isinstance(parent.ctx, ast.Load))
        called = isinstance(parent, ast.Call) and parent.func is node
        spread = called and any(isinstance(one, ast.Starred | ast.Tuple | ast.Dict) for one in parent.args)  # type: ignore[union-attr]
        if spread or ((indexed or through) and (part or kinds != {SEQUENTIAL})):
            self.search.refuse({SEQUENTIAL})

    def _elements(self, node: ast.Call) -> None:
        """What is called one after the other: no layer of it may give a tuple."""
        owner = next((one for one in reversed(self.parents[:-1]) if isinstance(one, (ast.Call, ast.FunctionDef))), None)
        inside = isinstance(owner, ast.Call) and (dotted(self.file, owner.func) == SEQUENTIAL or last_name(owner.func) == "append")
        if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and self._kinds(owner.func.value) == {MODULE_LIST}:
            return  # gone through
        gives = dotted(self.file, node.func) in SEVERAL or last_name(node.func) in self.search.by_name.giving_several
        if gives and inside:
            self.search.refuse({SEQUENTIAL})

    def _output_size(self, node: ast.Call) -> None:
        """`self.up(x, output_size=size)`."""
        name = dotted(self.file, node.func)
        if name.startswith("torch."):
            return
        has_size = any(word.arg in ("output_size", None) for word in node.keywords) or len(node.args) > 1
        kinds = self._kinds(node.func) if has_size else frozenset()
        self.search.refuse(OUTPUT_SIZE & kinds)
        if any(word.arg == "output_size" for word in node.keywords) and (not kinds or UNKNOWN in kinds):
            self.search.refuse(OUTPUT_SIZE)

    def _is_asked_for(self, node: ast.AST) -> bool:
        """Whether a class stands in an `isinstance` test or an annotation."""
        for outer, inner in zip(reversed(self.parents[:-1]), reversed(self.parents), strict=False):
            if isinstance(outer, ast.Call):
                return isinstance(outer.func, ast.Name) and outer.func.id in ("isinstance", "issubclass") and inner is outer.args[-1]
            if isinstance(outer, ast.Compare):
                return any(_is_type_of(side) for side in (outer.left, *outer.comparators))
            if isinstance(outer, (ast.arg, ast.AnnAssign)) and outer.annotation is inner:
                return True
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) and outer.returns is inner:
                return True
        return False

    def _asked_together(self, node: ast.AST) -> list[ast.expr]:
        """The classes that stand beside one in the test that it is part of."""
        tests = (
            one for one in reversed(self.parents[:-1]) if not isinstance(one, (ast.Tuple, ast.Set, ast.List, ast.BinOp, ast.Attribute))
        )
        test = next(tests)
        classes = (
            test.args[1:] if isinstance(test, ast.Call) else [test.left, *test.comparators] if isinstance(test, ast.Compare) else [node]
        )
        return [part for one in classes if isinstance(one, ast.expr) for part in parts(one)]

    def _is_known_class(self, node: ast.expr) -> bool:
        """Whether a class in an `isinstance` test is written there by its own name."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        own = {name for name in self.file.classes if "." not in name}
        if not isinstance(root, ast.Name):
            return False
        return root.id in self.file.bindings or root.id in own or hasattr(builtins, root.id) or self._is_foreign(root.id)

    def _is_foreign(self, name: str) -> bool:
        """Whether a name stands for no class of torch, since it is no parameter, and its file imports packages without layers alone."""
        functions = (one for one in self.parents if isinstance(one, (ast.FunctionDef, ast.Lambda)))
        parameters = {argument.arg for function in functions for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
        return name not in parameters and all(one.partition(".")[0] in WITHOUT_LAYERS for one in self.file.bindings.values())

    def _parent(self) -> ast.AST | None:
        return self.parents[-2] if len(self.parents) > 1 else None

    def _refuse(self, kinds: Collection[str], owner: ast.expr | None = None) -> None:
        """Refuse layers for what is done with `owner`, one of them: in the files of this group alone where it is certain that they construct it."""
        if owner is not None and self._is_of_group(owner):
            self.search.refuse_within(self.group, kinds)
        else:
            self.search.refuse(kinds)

    def _is_of_group(self, owner: ast.expr) -> bool:
        """Whether a layer is constructed on the spot, or kept by an instance of a class that is known: of `self`, or by what constructs or tests it."""
        if isinstance(owner, ast.Call):
            return dotted(self.file, owner.func) in layers()
        root = owner
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        is_narrowed = any(guard.get(ast.unparse(root)) == frozenset({OTHER}) for guard in self.guards)
        return isinstance(owner, (ast.Attribute, ast.Subscript)) and (is_narrowed or self.search.by_name.is_own(owner))

    def _attribute(self, node: ast.Attribute) -> None:
        having = self.search.having(node.attr)
        if not having or self._is_own(node.value) or dotted(self.file, node) or self._is_of_another(node, having):
            return
        # `m.parametrizations.weight` is read of the layer.
        owner = node.value.value if isinstance(node.value, ast.Attribute) and node.value.attr == "parametrizations" else node.value
        kinds = self._kinds(owner) or frozenset({UNKNOWN})
        if owner is not node.value:
            self._refuse(having if UNKNOWN in kinds else kinds, owner)
            return
        if not self._is_of_group(owner):
            self.search.read |= {(self.group, kind) for kind in kinds}
        if node.attr in LIST_METHODS:
            having &= kinds | CONTAINERS  # nearly always a list of Python
        affected = kinds & having
        others = kinds - self.search.candidates
        is_parameter = any(node.attr in layers()[kind].params for kind in having)
        if UNKNOWN in kinds and isinstance(node.ctx, ast.Load) and not is_parameter and self._is_no_layer(node.value):
            return
        if UNKNOWN in kinds or (is_parameter and not affected and not others):
            self.search.refuse(having)
        elif affected and others and all(_own_variable(kind, node.attr) for kind in others) and self._is_filled(node, ("", "another")):
            self.search.beside.append((set(affected), set(others)))
        elif affected and (others or not self._is_spelled(node, affected)):
            self._refuse(affected, owner)
        elif len(affected) > 1:
            self.search.alike.append(set(affected))

    def _is_of_another(self, node: ast.Attribute, having: set[str]) -> bool:
        """Whether an attribute belongs to something else than a layer: the method of an array, `x.dim()`, or, of an owner that is
        not known, what classes of the repository have too, where it is no parameter."""
        parent = self._parent()
        if isinstance(parent, ast.Call) and parent.func is node and node.attr not in METHODS and not having & (CONTAINERS | {SEQUENTIAL}):
            return True
        is_parameter = any(node.attr in layers()[kind].params for kind in having)
        own = node.attr in self.search.by_name.own_attributes and not is_parameter and node.attr not in METHODS
        return own and UNKNOWN in (self._kinds(node.value) or {UNKNOWN})

    def _is_no_layer(self, owner: ast.expr) -> bool:
        """Whether an object is none of torch's layers: `np.finfo(float)`, or one that is asked for what no layer has, `args.lr` beside `args.eps`."""
        if isinstance(owner, ast.Call):
            return dotted(self.file, owner.func) in ("numpy.finfo", "torch.finfo")
        root = owner
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._loop_variables:
            return False
        text = ast.unparse(owner)
        short = text.removeprefix("self.")
        # A longer path means the same in all files, `config.optim`; a single name may be anything elsewhere.
        asked = self.search.asked_for.get(short, frozenset()) if "." in short else self._asked_for.get(text, frozenset())
        return bool(asked - layer_attributes())

    @cached_property
    def _asked_for(self) -> Mapping[str, frozenset[str]]:
        return asked_for(self.file.tree)

    @cached_property
    def _loop_variables(self) -> frozenset[str]:
        loops = (node for node in ast.walk(self.file.tree) if isinstance(node, (ast.For, ast.comprehension)))
        return frozenset(part.id for loop in loops for part in ast.walk(loop.target) if isinstance(part, ast.Name))

    def _is_own(self, node: ast.expr) -> bool:
        """Whether this is the instance of a class of the repository, which has the attribute itself."""
        return isinstance(node, ast.Name) and node.id in ("self", "cls", "ctx")

    def _kinds(self, node: ast.expr) -> frozenset[str]:
        text = ast.unparse(node)
        for guard in reversed(self.guards):
            if text in guard:
                return guard[text]
        return self.search.by_name.of(self.file, node)

    def _is_spelled(self, node: ast.Attribute, kinds: frozenset[str]) -> bool:
        """Whether this use of an attribute has one spelling for all these layers."""
        spellings = {layers()[kind].plain_reads.get(node.attr, "") for kind in kinds}
        if "" in spellings or (len(spellings) > 1 and not self._is_filled(node, spellings)):
            return False
        outer = [one for one in reversed(self.parents[:-1]) if not (isinstance(one, ast.keyword) and one.arg != "out")]
        data = outer[0] if isinstance(outer[0], ast.Attribute) and outer[0].attr == "data" else None
        user = outer[1] if data is not None else outer[0]
        stored = not isinstance((data or node).ctx, ast.Load)
        if not any(node.attr in layers()[kind].params for kind in kinds):
            return not stored
        if isinstance(user, ast.Assign):
            # `a.weight = b.weight` is read by `_sharing`; `.data` is a new value of the variable.
            return (stored and data is not None) or (data is None and (self._is_shared_by(user) or self._is_only_read(user)))
        if stored:
            return False
        if isinstance(user, ast.Attribute):
            return user.attr not in GRADIENTS
        # Whoever else is handed the parameter may keep it, or write to it.
        reads = isinstance(user, ast.Call) and (dotted(self.file, user.func).startswith("torch.") or last_name(user.func) in ARRAY_METHODS)
        return isinstance(user, ast.BinOp) or reads

    def _is_filled(self, node: ast.Attribute, spellings: Collection[str]) -> bool:
        """Whether weights of several layouts are given values that are alike in each: `nn.init.normal_(m.weight)`, `m.weight.data.zero_()`."""
        one_name = len({spelling.partition("[...]")[0] for spelling in spellings}) == 1
        outer = list(reversed(self.parents[:-1]))
        user, inner = (outer[1], outer[0]) if isinstance(outer[0], ast.Attribute) and outer[0].attr == "data" else (outer[0], node)
        if isinstance(user, ast.Attribute):
            return user.attr in FILLS
        if not isinstance(user, ast.Call) or user.args[:1] != [inner]:
            return False
        name = dotted(self.file, user.func).removeprefix("torch.nn.init.")
        literal = all(isinstance(one, ast.Constant) for one in (*user.args[1:], *(word.value for word in user.keywords)))
        return name in FILLS or (one_name and name in FAN_FILLS and literal and all(word.arg in FAN_FILLS[name] for word in user.keywords))

    def _is_only_read(self, node: ast.Assign) -> bool:
        """Whether `w = m.weight` names a parameter whose values alone are used: as a number of arithmetic, or by a function of torch."""
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            return False
        function = self._function()
        name = node.targets[0].id
        if function is None:
            return False
        uses = {id(one) for one in walk(function) if isinstance(one, ast.Name) and one.id == name} - {id(node.targets[0])}
        for outer in walk(function):
            if isinstance(outer, ast.BinOp) or (isinstance(outer, ast.Call) and dotted(self.file, outer.func).startswith(PURE)):
                uses -= {id(child) for child in ast.iter_child_nodes(outer)}
        return not uses

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
