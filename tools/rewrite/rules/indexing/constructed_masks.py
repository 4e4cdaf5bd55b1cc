"""Boolean masks that a constructor computes from its arguments and that nothing changes: how many elements they select is known while JAX traces."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.aliases import VIEW_FUNCTIONS, VIEW_METHODS
from migrate_agent.tools.rewrite.analysis.facts import Facts, is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.rewrite.analysis.self_references import family, unseen_read
from migrate_agent.tools.rewrite.analysis.static_masks import StaticValues
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.registry import Refuse, methods, ops
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed, Span

LOGIC = (ast.BitAnd, ast.BitOr, ast.BitXor)
MOVES = frozenset({"to", "cuda", "cpu"})
OF_SHAPE = frozenset({"shape", "ndim", "device", "dtype"})
SUMMARIES = frozenset({"sum", "any", "all", "count_nonzero", "size", "dim", "numel"})
PLACES = frozenset({"nonzero", "argwhere"})
SHARING = frozenset({"torch.as_tensor", "torch.from_numpy", "torch.asarray"})
"""Functions whose result may share the memory of what they are given."""
NEW_ARRAYS = frozenset(f"numpy.{name}" for name in ("array", "eye", "identity", "ones", "zeros", "full", "tri", "arange", "triu", "tril"))
"""Functions of NumPy that give new memory."""
CONVERSIONS = frozenset({"bool", "type", "ravel", "broadcast_to", "positive", "moveaxis"})
"""Methods and functions whose result may share the memory of a tensor that is boolean already, as views do."""
EVERYTHING = m.Subscript(slice=[m.SubscriptElement(m.Index(m.Ellipsis()))])
SELECTING = frozenset({"masked_select", "masked_fill", "masked_fill_"})
"""Methods and functions whose mask is a mask and nothing else."""


class KeepMasksStatic(Rule):
    """Keep masks of a constructor in NumPy where calls select by them: `self.m = adj > 0` → `self.m = Static(np.asarray(adj > 0))`, read as `self.m.value`.

    NNX takes an array for data, so that under `jax.jit` nobody would know how many elements it selects. Declines for masks made of parameters, of
    buffers or of random numbers, where anything else sets the attribute or may change the mask in place, and where not all reads are in sight.
    """

    KEEP = (
        "class Plain:\n    def __init__(self, adj):\n        self.m = adj > 0\n\n    def f(self, x):\n        return x[self.m]\n",
        "import numpy as np\n\nclass Plain:\n    def __init__(self, n):\n        self.m = np.eye(n) > 0\n\n    def f(self, x):\n        return x[self.m]\n",
    )
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, adj: torch.Tensor):\n        super().__init__()\n"
            "        self.adj = adj\n        self.m = (self.adj > 0)\n        self.e = nn.Parameter(torch.ones(len(self.m.nonzero())))\n\n"
            "    def forward(self, x: torch.Tensor):\n        return x[self.m] * self.e, x[:, ~self.m]\n",
            "class M(nnx.Module):\n    def __init__(self, adj: jax.Array, *, rngs: nnx.Rngs):\n        self.adj = adj\n"
            "        self.m = Static(np.asarray(self.adj > 0))\n        self.e = nnx.Param(jnp.ones(len(jnp.argwhere(self.m.value))))\n\n"
            "    def __call__(self, x: jax.Array):\n        return x[self.m.value] * self.e[...], x[:, ~self.m.value]\n",
        ),
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n: int):\n        super().__init__()\n"
            "        near = torch.eye(n) > 0\n        self.far = ~near\n        self.never = near.clone()\n\n"
            "    def forward(self, x: torch.Tensor):\n        return x[self.far], x.masked_fill(self.never, 0.0)\n",
            "class M(nnx.Module):\n    def __init__(self, n: int, *, rngs: nnx.Rngs):\n        near = jnp.eye(n) > 0\n"
            "        self.far = Static(np.asarray(~near))\n        self.never = near\n\n"
            "    def __call__(self, x: jax.Array):\n        return x[self.far.value], jnp.where(self.never, 0.0, x)\n",
        ),
    )

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        if self.context.span(original) not in masks_here(self.context).stores:
            return None
        value = updated.value.with_changes(lpar=[], rpar=[])
        return updated.with_changes(value=self.context.build("vendored.Static(np.asarray({value}))", value=value))

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        return cst.Attribute(updated, cst.Name("value")) if self.context.span(original) in masks_here(self.context).reads else None


@dataclass(frozen=True)
class ConstructedMasks:
    """In one class: the statements that set such masks, and all reads of them."""

    stores: frozenset[Span] = frozenset()
    reads: frozenset[Span] = frozenset()


def masks_here(context: Context) -> ConstructedMasks:
    """The constructed masks of the class that is being rewritten, found out once."""
    if context.cls is None:
        return ConstructedMasks()
    cache: dict[str, ConstructedMasks] = context.file.__dict__.setdefault("_constructed_masks", {})
    if context.cls.id not in cache:
        cache[context.cls.id] = _constructed_masks(context.repo, context.cls, context.facts)
    return cache[context.cls.id]


def selects_statically(context: Context, node: cst.Subscript) -> bool:
    """Whether one index of an original subscript is such a mask, and all others are slices, so that the size of what it selects is known."""
    masks = [e for e in node.slice if isinstance(e.slice, cst.Index) and not isinstance(e.slice.value, cst.Ellipsis)]
    return len(masks) == 1 and isinstance(masks[0].slice, cst.Index) and is_static(context, masks[0].slice.value)


def is_static(context: Context, node: cst.BaseExpression) -> bool:
    """Whether an original expression is made of such masks alone, by what NumPy does itself."""
    match node:
        case cst.Attribute():
            return context.span(node) in masks_here(context).reads
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
            return is_static(context, inner)
        case cst.BinaryOperation(left=left, operator=cst.BitAnd() | cst.BitOr() | cst.BitXor(), right=right):
            return is_static(context, left) and is_static(context, right)
        case cst.Subscript(value=value, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]):
            return is_static(context, value)
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(name))) if name in MOVES:
            return is_static(context, value)
    return False


def as_selected(context: Context, target: cst.Subscript, source: cst.BaseExpression, value: cst.BaseExpression) -> cst.BaseExpression:
    """`value` without leading axes of size 1 that what is selected does not have: torch drops them when it writes, JAX does not.

    `target` and `source` are the original subscript and value. Raises `Refuse` where their ranks were not seen.
    """
    mask = next(e.slice.value for e in target.slice if isinstance(e.slice, cst.Index) and not isinstance(e.slice.value, cst.Ellipsis))
    fact = context.observed(source)
    if fact is not None and set(fact.kinds) <= {"int", "float", "bool"}:
        return value
    ranks = [_rank(one) for one in (fact, context.observed(target.value), context.observed(mask))]
    if fact is None or any(rank is None for rank in ranks):
        raise Refuse("how many axes a value has that a mask takes was not seen", "dynamic-shape")
    of_value, of_whole, of_mask = (rank or 0 for rank in ranks)
    excess = of_value - (of_whole - of_mask + 1)
    if excess <= 0:
        return value
    if any(size != 1 for shape in fact.shapes for size in shape[:excess]):
        raise Refuse("a value with more axes than what the mask selects", "dynamic-shape")
    first = [cst.SubscriptElement(cst.Index(cst.Integer("0"))) for _ in range(excess)]
    if isinstance(value, cst.Subscript) and m.matches(value, EVERYTHING):
        return value.with_changes(slice=first)
    return cst.Subscript(context.parenthesise(value), first)


def _rank(fact: Observed | None) -> int | None:
    """The number of axes that a tensor was always seen to have."""
    ranks = {len(shape) for shape in fact.shapes} if fact is not None and is_tensor(fact) else set()
    return ranks.pop() if len(ranks) == 1 else None


# -- which masks ----------------------------------------------------------------------------------------------------
def _constructed_masks(repo: Repo, model: ClassModel, facts: Facts) -> ConstructedMasks:
    """`facts` are those of the file of the class."""
    if not repo.is_module_class(model):
        return ConstructedMasks()
    stores, reads = set[Span](), set[Span]()
    lines = model.file.lines
    for owner in repo.ancestors(model):
        # Of classes in other files nothing is known here.
        if owner.file is not model.file or "__init__" not in owner.methods:
            continue
        for name, store in _static_stores(repo, owner, facts).items():
            stores |= {span_of(store, lines)} if owner is model else set()
            reads |= {span_of(node, lines) for node in _attributes(model, name) if isinstance(node.ctx, ast.Load)}
    return ConstructedMasks(frozenset(stores), frozenset(reads))


def _static_stores(repo: Repo, model: ClassModel, facts: Facts) -> dict[str, ast.Assign]:
    """Such masks of a class → the statements that set them."""
    masks = _boolean_stores(model, facts)
    # A mask may be made of another: both are kept in NumPy, or neither is.
    while lost := {name for name, store in masks.items() if not _Mask(repo, model, facts, name, store, frozenset(masks)).is_static()}:
        masks = {name: store for name, store in masks.items() if name not in lost}
    return masks


def _attributes(model: ClassModel, name: str) -> list[ast.Attribute]:
    return [node for node in walk(model.node) if isinstance(node, ast.Attribute) and model.own.get(id(node)) == name]


def _stores(model: ClassModel) -> Iterator[tuple[str, ast.Assign]]:
    """What the constructor assigns to attributes, once for each time that it runs."""
    inside = [node for node in walk(model.methods["__init__"])[1:] if isinstance(node, ast.FunctionDef | ast.Lambda | ast.For | ast.While)]
    repeated = {id(node) for one in inside for node in walk(one)}
    for node in walk(model.methods["__init__"]):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and id(node) not in repeated:
            if name := model.own.get(id(node.targets[0])):
                yield name, node


def _boolean_stores(model: ClassModel, facts: Facts) -> dict[str, ast.Assign]:
    """Attributes to which the constructor assigns boolean tensors."""
    return {name: node for name, node in _stores(model) if _is_boolean(node.value, facts, model.file.lines)}


def _is_boolean(value: ast.expr, facts: Facts, lines: list[str]) -> bool:
    """Whether what an expression gives was seen to be a boolean tensor, or is spelled as one."""
    fact = facts.observed.get(span_of(value, lines))
    if not is_tensor(fact) or fact is None or "none" in fact.kinds:
        return False
    if fact.dtypes:
        return set(fact.dtypes) == {"bool"} and all(fact.shapes)
    return _spelled_boolean(value)


def _spelled_boolean(value: ast.expr) -> bool:
    match value:
        case ast.Compare() | ast.Call(func=ast.Attribute(attr="bool"), args=[]):
            return True
        case ast.UnaryOp(op=ast.Invert()):
            return True
    return False


@dataclass
class _Mask:
    """One attribute that may be such a mask: `store` is the statement in the constructor of `owner` that sets it."""

    repo: Repo
    owner: ClassModel
    facts: Facts
    name: str
    store: ast.Assign
    others: frozenset[str] = frozenset()
    """The masks that count as such ones."""
    members: Sequence[ClassModel] = ()
    parents: Mapping[int, ast.AST] = field(default_factory=dict)

    def is_static(self) -> bool:
        """Whether the mask is known once the module is constructed, and calls need it to be."""
        self.members = family(self.repo, self.owner)
        if any(_attributes(one, self.name) for one in self.members if one.file is not self.owner.file):
            return False
        nodes = [(one, node) for one in self.members for node in _attributes(one, self.name)]
        self.parents = {id(child): node for one in self.members for node in walk(one.node) for child in ast.iter_child_nodes(node)}
        if sum(not isinstance(node.ctx, ast.Load) for _, node in nodes) != 1 or self._is_registered():
            return False
        constructing = {id(node) for one in self.members if "__init__" in one.methods for node in walk(one.methods["__init__"])}
        reads = [node for _, node in nodes if isinstance(node.ctx, ast.Load)]
        if not any(self._selects(node) for node in reads if id(node) not in constructing):
            return False
        if not all(self._leaves_alone(node, id(node) in constructing) for node in reads):
            return False
        return self._is_computed() and not unseen_read(self.repo, list(self.members), self.name)

    def _is_registered(self) -> bool:
        """Whether the name may also stand for a buffer, for something of the class itself, or for what is set under a computed name."""
        return any(
            self.repo.buffer(one, self.name) is not None or one.computes_names or self.name in one.methods or self._is_class_level(one)
            for one in self.members
        ) or any(_sets_computed_name(node) for one in self.members for node in walk(one.node))

    def _is_class_level(self, model: ClassModel) -> bool:
        return any(isinstance(node, ast.Name) and node.id == self.name for statement in model.node.body for node in _targets(statement))

    def _is_computed(self) -> bool:
        """Whether the value is new memory, computed from arguments of the constructor and from constants."""
        constructor = self.owner.methods["__init__"]
        values = _ConstructorValues.of(self.repo, self.owner, self.facts, constructor, self.members)
        return values.known(self.store.value) and values.is_new(self.store.value)

    # -- reads ------------------------------------------------------------------------------------------------------
    def _above(self, node: ast.AST) -> ast.AST:
        return self.parents.get(id(node), node)

    def _selects(self, node: ast.expr) -> bool:
        """Whether this read selects as many elements as the mask has: no number fills those, and no other shape would do."""
        match self._above(node):
            case (ast.UnaryOp() | ast.BinOp() | ast.Tuple()) as parent:
                return self._selects(parent)
            case ast.Subscript(value=value) as parent if value is node:
                return self._selects(parent)
            case ast.Attribute(attr=attr) as parent if attr in MOVES:
                return self._selects(self._above(parent))  # type: ignore[arg-type]
            case ast.Subscript(ctx=ast.Load()):
                return True
            case ast.Subscript() as parent:
                statement = self._above(parent)
                return isinstance(statement, ast.Assign | ast.AugAssign) and not self._is_number(statement.value)
            case ast.Call(func=ast.Attribute(attr="masked_select")):
                return True
        return False

    def _is_number(self, node: ast.expr) -> bool:
        fact = self._fact(node)
        if isinstance(node, ast.Constant):
            return True
        return fact is not None and (set(fact.kinds) <= {"int", "float", "bool"} or (bool(fact.shapes) and not any(fact.shapes)))

    def _fact(self, node: ast.expr) -> Observed | None:
        return self.facts.observed.get(span_of(node, self.owner.file.lines))

    def _leaves_alone(self, node: ast.expr, constructing: bool) -> bool:
        """Whether a read neither changes the mask nor gives it another name, and takes a NumPy array as well as one of JAX."""
        match self._above(node):
            case ast.Subscript(slice=index) if index is node:
                return True
            case ast.Tuple() as parent:
                return isinstance(above := self._above(parent), ast.Subscript) and above.slice is parent
            case ast.UnaryOp(op=ast.Invert()) as parent:
                return self._leaves_alone(parent, constructing)
            case ast.BinOp(op=operator) as parent if isinstance(operator, LOGIC):
                return self._leaves_alone(parent, constructing)
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                return self._is_numeric(right if left is node else left)
            case ast.Subscript(value=value, ctx=ast.Load()) as parent if value is node:
                return self._leaves_alone(parent, constructing)
            case ast.Attribute(attr=attr) as parent:
                return self._asks_alone(parent, attr, constructing)
            case ast.Call(func=ast.Name(id="len")):
                return True
            case ast.Assign(targets=[target]) if isinstance(node, ast.UnaryOp | ast.BinOp):
                return constructing and self.owner.own.get(id(target), "") in self.others
            case ast.Call(func=ast.Attribute(attr=attr), args=args) if attr in SELECTING:
                return node is args[-1 if attr == "masked_select" else -2] if len(args) > 1 or attr == "masked_select" else False
        return False

    def _is_numeric(self, node: ast.expr) -> bool:
        """Whether an expression was seen to be a tensor of numbers, which decides the dtype of a product with a mask."""
        fact = self._fact(node)
        return fact is not None and is_tensor(fact) and bool(fact.dtypes) and "bool" not in fact.dtypes

    def _asks_alone(self, method: ast.Attribute, name: str, constructing: bool) -> bool:
        call = self._above(method)
        if not isinstance(call, ast.Call) or call.func is not method:
            return name in OF_SHAPE
        if name in MOVES:
            fact = self._fact(call)
            return fact is not None and set(fact.dtypes) == {"bool"} and self._leaves_alone(call, constructing)
        # Places that a call asks for are for the rules that pad them.
        return name in SUMMARIES or (constructing and name in PLACES)


def _sets_computed_name(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[_, name, _]):
            return not isinstance(name, ast.Constant)
    return False


def _targets(statement: ast.stmt) -> Sequence[ast.expr]:
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target, value=ast.expr()):
            return [target]
    return []


# -- what a constructor knows ---------------------------------------------------------------------------------------
@dataclass
class _ConstructorValues(StaticValues):
    """Which expressions of a constructor follow from its arguments and from constants alone, without random numbers."""

    attributes: frozenset[str] = frozenset()
    """Attributes that count as known."""

    @classmethod
    def of(
        cls, repo: Repo, model: ClassModel, facts: Facts, constructor: FunctionNode, members: Sequence[ClassModel]
    ) -> _ConstructorValues:
        """The values of a constructor; its attributes one after the other, as they follow from each other."""
        values = cls(repo, model.file, facts, constructor, model, parameters=True)
        candidates = {name: node.value for name, node in _stores(model) if _is_kept(repo, model, members, name)}
        while more := {name for name, value in candidates.items() if name not in values.attributes and values.known(value)}:
            values = cls(repo, model.file, facts, constructor, model, parameters=True, attributes=values.attributes | more)
        return values

    def known(self, node: ast.AST) -> bool:
        """Whether the value of an expression is known once the module is constructed, whatever state is loaded into it later."""
        if isinstance(node, ast.Name | ast.Attribute):
            fact = self.observed(node)
            if fact is not None and any(kind == "parameter" or kind.startswith("module:") for kind in fact.kinds):
                return False
        if self.model is not None and isinstance(node, ast.Attribute) and self.model.own.get(id(node)) in self.attributes:
            return True
        return super().known(node)

    def is_new(self, node: ast.expr, followed: frozenset[str] = frozenset()) -> bool:
        """Whether a tensor that is known has memory of its own, which nobody else can write to. `followed`: names on the way here, against circles."""
        match node:
            case ast.Compare() | ast.UnaryOp() | ast.BinOp() | ast.List():
                return True
            case ast.Name(id=name):
                bound = self.values.get(name, ())
                return bool(bound) and (name in followed or all(self.is_new(value, followed | {name}) for value in bound))
            case ast.Subscript(value=value) | ast.Attribute(value=value, attr="T" | "mT"):
                return self.is_new(value, followed)
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args):
                return self._gives_new(node, attr, value, args, followed)
        return False

    def _gives_new(self, call: ast.Call, attr: str, value: ast.expr, args: Sequence[ast.expr], followed: frozenset[str]) -> bool:
        dotted = self.dotted(call.func)
        if dotted.startswith(("torch.", "numpy.")):
            shares = (attr in VIEW_FUNCTIONS | CONVERSIONS or dotted in SHARING) and bool(args)
            return self.is_new(args[0], followed) if shares else dotted in ops() or dotted in NEW_ARRAYS
        if self.model is not None and id(call.func) in self.model.own:
            return self._method_gives_new(attr)
        fact = self.observed(value)
        converts = attr == "bool" and fact is not None and bool(fact.dtypes) and "bool" not in fact.dtypes
        if converts:
            return True
        if attr in VIEW_METHODS | MOVES | CONVERSIONS or attr.endswith("_"):
            return self.is_new(value, followed)
        return attr in methods()

    def _method_gives_new(self, name: str) -> bool:
        """Whether all that a method of the class gives back is new memory."""
        method = self.model.methods.get(name) if self.model is not None else None
        if method is None:
            return False
        inside = _ConstructorValues(self.repo, self.file, self.facts, method, self.model, parameters=True)
        results = [node.value for node in walk(method) if isinstance(node, ast.Return)]
        return bool(results) and all(value is not None and inside.is_new(value) for value in results)


def _is_kept(repo: Repo, model: ClassModel, members: Sequence[ClassModel], name: str) -> bool:
    """Whether the constructor alone sets an attribute, and changes no part of it in place."""
    nodes = [node for one in members for node in _attributes(one, name)]
    if sum(not isinstance(node.ctx, ast.Load) for node in nodes) != 1 or any(repo.buffer(one, name) is not None for one in members):
        return False
    constructor, own = model.methods["__init__"], {id(node) for node in nodes}
    return not any(id(part) in own for node in walk(constructor) if (changed := _changed(node)) is not None for part in walk(changed))


def _changed(node: ast.AST) -> ast.AST | None:
    """What a node changes in place, itself or by a function whose name says so."""
    match node:
        case ast.Subscript(ctx=ast.Store(), value=value):
            return value
        case ast.Call(func=ast.Attribute(attr=attr) | ast.Name(id=attr)) if attr.endswith("_") and not attr.endswith("__"):
            return node
    return None
