"""Numpy arrays kept on a module whose values Python needs: loops, branches and sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.randomness import FunctionKey, callees_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, Repo
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
        (
            "import numpy as np\nimport torch\nfrom torch import nn\n\ndef powers(t, n):\n    return torch.tensor(np.stack([t**i for i in range(n)]))\n\n"
            "class Base(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n        self.t = np.linspace(0, 1, n)\n\n"
            "class M(Base):\n    def forward(self, x):\n        return powers(self.t, 3)\n",
            "import numpy as np\n\ndef powers(t, n):\n    return jnp.array(np.stack([t**i for i in range(n)]))\n\n"
            "class Base(nnx.Module):\n    def __init__(self, n, *, rngs: nnx.Rngs):\n        self.t = Static(np.linspace(0, 1, n))\n\n"
            "class M(Base):\n    def __call__(self, x):\n        return powers(self.t.value, 3)\n",
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
    """The statements of a class that keep arrays whose values Python needs, and all of its reads of these and of those that its bases keep.
    `facts` are those of its file."""
    if not repo.is_module_class(model):
        return
    members = family(repo, model)
    for owner in (model, *repo.ancestors(model)):
        if "__init__" not in owner.methods or owner.file is not model.file:
            continue
        for name, stores in _array_stores(owner, facts).items():
            if _needs_values(repo, owner, name, stores, members, facts):
                yield from stores if owner is model else ()
                yield from (node for node in _attributes(model, name) if isinstance(node.ctx, ast.Load))


def _attributes(model: ClassModel, name: str) -> list[ast.Attribute]:
    return [node for node in walk(model.node) if isinstance(node, ast.Attribute) and model.own.get(id(node)) == name]


def _needs_values(
    repo: Repo, owner: ClassModel, name: str, stores: Sequence[ast.Assign], members: Sequence[ClassModel], facts: Facts
) -> bool:
    """Whether Python needs the values of an array while a module is called, and nothing but these statements of the constructor sets it. Of classes in
    other files nothing is known here."""
    if any(_attributes(one, name) for one in members if one.file is not owner.file):
        return False
    nodes = [node for one in members for node in _attributes(one, name)]
    if sum(not isinstance(node.ctx, ast.Load) for node in nodes) != len(stores) or unseen_read(repo, list(members), name):
        return False
    if all(_numpy_call(store.value, owner.file) in SEVERAL for store in stores):
        return True
    for one in members:
        called = {id(node) for key, method in one.methods.items() if key != "__init__" for node in walk(method)}
        # A shape is known while tracing, whatever holds the array.
        called -= {id(node.value) for node in walk(one.node) if isinstance(node, ast.Attribute) and node.attr in OF_SHAPE}
        reads = {id(node) for node in _attributes(one, name)} & called
        if reads and any(id(node) in reads for read in _value_readers(repo, one, facts) for node in walk(read)):
            return True
    return False


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
    function = _numpy_call(value, model.file)
    if function in SEVERAL:
        return True
    return fact.kinds == ("ndarray",) if fact is not None else function in ("array", "arange", "linspace", "zeros", "ones")


def _numpy_call(value: ast.AST, file: FileModel) -> str:
    """The name of the function of numpy that an expression calls, or ""."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if file.bindings.get(owner) == "numpy":
            return name
    return ""


def _value_readers(repo: Repo, model: ClassModel, facts: Facts) -> Iterator[ast.expr]:
    """Expressions of which Python needs the value: what loops go through, tests, bounds of slices, arguments of `float` and the like, of functions of
    numpy, and of functions that hand them on to these; and single elements of numpy, which beside tensors become Python's numbers."""

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
            case ast.Call(args=args) if _numpy_call(node, model.file):
                yield from args
    for name, method in model.methods.items():
        caller = (model.file.file.path, f"{model.qualname}.{name}")
        for call in walk(method) if caller[1] in model.file.functions else ():
            if isinstance(call, ast.Call):
                yield from _handed_on(repo, model, facts, caller, call)


def _handed_on(repo: Repo, model: ClassModel, facts: Facts, caller: FunctionKey, call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that the function of the repository gives to numpy."""
    held = [argument for argument in call.args if isinstance(argument, ast.Attribute) and id(argument) in model.own]
    for path, function in callees_of(repo, model.file, facts, caller, model, call) if held else ():
        file = repo.files[path]
        definition = file.functions[function]
        names = [parameter.arg for parameter in (*definition.args.posonlyargs, *definition.args.args)]
        names = names[1:] if names[:1] == ["self"] else names
        computed = {name.id for node in walk(definition) if _numpy_call(node, file) for name in walk(node) if isinstance(name, ast.Name)}
        yield from (argument for name, argument in zip(names, call.args, strict=False) if name in computed)
