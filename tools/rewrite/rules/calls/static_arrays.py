"""Numpy arrays kept on a module whose values Python needs: loops, branches and sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.rewrite.analysis.self_references import family, unseen_read
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

READING = frozenset({"int", "float", "bool", "range", "round", "str", "list", "tuple", "tolist", "item"})
"""Functions and methods that need the values themselves."""
SEVERAL = frozenset({"tril_indices", "triu_indices", "diag_indices", "nonzero", "unravel_index", "ix_"})
"""Functions of numpy that give a tuple of arrays, which NNX does not take for an attribute."""
OF_SHAPE = frozenset({"shape", "ndim", "size", "dtype"})


class KeepArraysStatic(Rule):
    """Keep numpy arrays whose values Python needs: `self.anchors = np.array(…)` → `self.anchors = Static(np.array(…))`, read as `self.anchors.value`.

    NNX takes a numpy array for data, whose values are unknown while a function is traced, and no tuple of
    arrays at all (`np.tril_indices(n)`). Declines where an array only enters arithmetic, where a call sets it
    anew, and where not all reads are in sight.
    """

    KEEP = (
        "import numpy as np\n\nclass Plain:\n    def __init__(self):\n        self.x = np.ones(3)\n\n    def f(self):\n        return [x for x in self.x]\n",
    )
    CHANGE = (
        (
            "import numpy as np\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.sizes = np.arange(n)\n        self.sizes[0] = 1\n        self.basis = np.linspace(0, 1, n)\n\n"
            "    def forward(self, x):\n        for size in self.sizes:\n            x = x + float(size)\n        return x * self.basis\n",
            "import numpy as np\n\n\nclass M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.sizes = Static(np.arange(n))\n"
            "        self.sizes.value[0] = 1\n        self.basis = np.linspace(0, 1, n)\n\n    def __call__(self, x):\n"
            "        for size in self.sizes.value:\n            x = x + float(size)\n        return x * self.basis\n",
        ),
        (
            "import numpy as np\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        self.lower = np.tril_indices(n, k=-1)\n\n    def forward(self, x):\n        return x[self.lower[0], self.lower[1]]\n",
            "import numpy as np\n\n\nclass M(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n"
            "        self.lower = Static(np.tril_indices(n, k=-1))\n\n    def __call__(self, x):\n"
            "        return x[self.lower.value[0], self.lower.value[1]]\n",
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._known: dict[str, tuple[frozenset[Span], frozenset[Span]]] = {}

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        if self.context.span(original) not in self._static_spans()[0]:
            return None
        return updated.with_changes(value=self.context.build("vendored.Static({value})", value=updated.value))

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        return cst.Attribute(updated, cst.Name("value")) if self.context.span(original) in self._static_spans()[1] else None

    def _static_spans(self) -> tuple[frozenset[Span], frozenset[Span]]:
        context = self.context
        if context.cls is None:
            return frozenset(), frozenset()
        if context.cls.id not in self._known:
            nodes = list(_static_nodes(context.repo, context.cls, context.facts))
            spans = [(isinstance(node, ast.Assign), span_of(node, context.file.lines)) for node in nodes]
            stores, reads = (frozenset(span for store, span in spans if store is of_stores) for of_stores in (True, False))
            self._known[context.cls.id] = stores, reads
        return self._known[context.cls.id]


def _static_nodes(repo: Repo, model: ClassModel, facts: Facts) -> Iterator[ast.Assign | ast.Attribute]:
    """The statements that keep arrays whose values Python needs, and all reads of these."""
    constructor = model.methods.get("__init__")
    if constructor is None or not repo.is_module_class(model):
        return
    members = family(repo, model)
    for name, stores in _array_stores(model, facts).items():
        others = [one for one in members if one is not model and name in one.own.values()]
        nodes = [node for node in walk(model.node) if isinstance(node, ast.Attribute) and model.own.get(id(node)) == name]
        reads = [node for node in nodes if isinstance(node.ctx, ast.Load)]
        if others or len(nodes) - len(reads) != len(stores) or unseen_read(repo, members, name):
            continue
        called = {id(node) for method in model.methods.values() if method is not constructor for node in walk(method)}
        several = all(_numpy_call(store.value, model) in SEVERAL for store in stores)
        # A shape is known while tracing, whatever holds the array.
        called -= {id(node.value) for node in walk(model.node) if isinstance(node, ast.Attribute) and node.attr in OF_SHAPE}
        if several or any(
            id(node) in called for read in _value_readers(model, facts) for node in walk(read) if model.own.get(id(node)) == name
        ):
            yield from stores
            yield from reads


def _array_stores(model: ClassModel, facts: Facts) -> dict[str, list[ast.Assign]]:
    """Attributes to which the constructor, and nothing else, assigns numpy arrays."""
    assignments: dict[str, list[ast.Assign]] = {}
    for node in walk(model.methods["__init__"]):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and (name := model.own.get(id(node.targets[0]))):
            assignments.setdefault(name, []).append(node)
    lines = model.file.lines
    return {name: nodes for name, nodes in assignments.items() if all(_is_array(node.value, facts, lines, model) for node in nodes)}


def _is_array(value: ast.expr, facts: Facts, lines: list[str], model: ClassModel) -> bool:
    fact = facts.observed.get(span_of(value, lines))
    function = _numpy_call(value, model)
    if function in SEVERAL:
        return True
    return fact.kinds == ("ndarray",) if fact is not None else function in ("array", "arange", "linspace", "zeros", "ones")


def _numpy_call(value: ast.expr, model: ClassModel) -> str:
    """The name of the function of numpy that an expression calls, or ""."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if model.file.bindings.get(owner) == "numpy":
            return name
    return ""


def _value_readers(model: ClassModel, facts: Facts) -> Iterator[ast.expr]:
    """Expressions of which Python needs the value: what loops go through, tests, bounds of slices, arguments of `float` and the like; and single
    elements of numpy, which beside tensors become Python's numbers."""

    def kinds_of(part: ast.expr) -> set[str]:
        fact = facts.observed.get(span_of(part, model.file.lines))
        return set(fact.kinds) if fact else set()

    for node in walk(model.node):
        match node:
            case ast.For(iter=value) | ast.comprehension(iter=value):
                yield value
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
                yield test
            case ast.Subscript(value=ast.Attribute() as value, slice=index) if kinds_of(node):
                if all(kind.startswith("object:numpy.") for kind in kinds_of(node)) and kinds_of(index) <= {"int"}:
                    yield value
            case ast.Slice(lower=lower, upper=upper):
                yield from (bound for bound in (lower, upper) if bound is not None)
            case ast.Call(func=ast.Name(id=function), args=args) if function in READING:
                yield from args
            case ast.Call(func=ast.Attribute(value=value, attr=function)) if function in READING:
                yield value
