"""Plain lists under the name of the container that is made of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

FILLED = frozenset({"list", "dict", "OrderedDict"})


class GatherInLocals(Rule):
    """`self.xs = []`, filled, then `self.xs = nn.ModuleList(self.xs)` → `xs = []`, filled, then `self.xs = nnx.List(xs)`.

    NNX would have taken the plain list for a static attribute. Declines where a method reads the list in between.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.x = []\n        self.x.append(x)\n        self.x = tuple(self.x)\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        self.layers = []\n"
            "        for i in range(3):\n            self.layers.append(nn.Linear(d, d))\n        self.layers = nn.Sequential(*self.layers)\n\n"
            "    def forward(self, x):\n        return self.layers(x)\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        layers = []\n"
            "        for i in range(3):\n            layers.append(Linear(d, d, rngs=rngs))\n        self.layers = Sequential(*layers)\n\n"
            "    def __call__(self, x):\n        return self.layers(x)\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        context = self.context
        if context.cls is None or context.path[-1:] != ["__init__"] or not context.is_self(original.value):
            return None
        if context.cls.id not in context.gathered:
            module = context.repo.is_module_class(context.cls)
            context.gathered[context.cls.id] = dict(_gathered(context.cls, context.facts)) if module else {}
        local = context.gathered[context.cls.id].get(context.span(original))
        return cst.Name(local) if local else None


def _gathered(model: ClassModel, facts: Facts) -> Iterator[tuple[Span, str]]:
    """Reads and writes of attributes that are local variables in the rewrite, by span, and the variable's name."""
    constructor = model.methods.get("__init__")
    if constructor is None:
        return
    body = constructor.body
    for first, statement in enumerate(body):
        name, value = _stored(model, statement)
        if not name or value is None or not _plain(value):
            continue
        last = next((i for i, later in enumerate(body[first + 1 :], first + 1) if _stored(model, later)[0] == name), None)
        wrapped = _stored(model, body[last])[1] if last is not None else None
        fact = facts.observed.get(span_of(wrapped, model.file.lines)) if wrapped is not None else None
        if last is None or wrapped is None or fact is None or not all(kind.startswith("module:") for kind in fact.kinds):
            continue
        region: list[ast.AST] = [*body[first:last], wrapped]
        if not any(model.own.get(id(node)) == name for node in walk(wrapped)) or _read_by_methods(model, region, name):
            continue
        local = _free(constructor, name)
        yield from ((span_of(node, model.file.lines), local) for part in region for node in walk(part) if model.own.get(id(node)) == name)


def _stored(model: ClassModel, node: ast.stmt) -> tuple[str, ast.expr | None]:
    match node:
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            return model.own.get(id(target), ""), value
    return "", None


def _plain(value: ast.expr) -> bool:
    """Whether a value is a plain list or dictionary that is made here."""
    if isinstance(value, ast.Call):
        return getattr(value.func, "attr", getattr(value.func, "id", "")) in FILLED
    return isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)


def _read_by_methods(model: ClassModel, region: list[ast.AST], name: str) -> bool:
    """Whether the module itself, or a method that reads the attribute, is used before the container is made."""
    nodes = [node for part in region for node in walk(part)]
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and id(node) in model.own}
    constructor = model.methods["__init__"]
    own = constructor.args.args[0].arg if constructor.args.args else ""
    if any(isinstance(node, ast.Name) and node.id == own and id(node) not in owners for node in nodes):
        return True
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and id(node) in model.own} & set(model.methods)
    return any(model.own.get(id(node)) == name for method in used for node in walk(model.methods[method]))


def _free(constructor: FunctionNode, name: str) -> str:
    taken = {n.id for n in walk(constructor) if isinstance(n, ast.Name)} | {a.arg for a in walk(constructor) if isinstance(a, ast.arg)}
    local = name.lstrip("_") or name
    return local if local not in taken else f"{local}_parts"
