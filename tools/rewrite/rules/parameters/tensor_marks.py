"""Attributes that code hangs on tensors for others to find: hints for an optimiser, misspelt flags."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from migrate_agent.tools.rewrite.analysis.facts import is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.scan.nodes import walk

KNOWN = frozenset({"data", "grad", "requires_grad", "names", "real", "imag", "retains_grad"})
"""Attributes of a tensor that mean something when they are set."""


class KeepMarksOnModules(Rule):
    """Keep what a constructor hangs on a parameter, and the class reads again, on the module: `self.weight.fast = None` → `self.weight_fast = None`.

    Declines where anything but a module's own parameters has an attribute of this name in code that a module reaches, where it is set outside of
    constructors, or written to in place, and where the class has an attribute of the new name.
    """

    KEEP = ("class Plain:\n    def __init__(self, x):\n        self.x = x\n        self.x.fast = None\n",)
    CHANGE = (
        (
            "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.ones(d, d))\n        self.w.fast = None\n        self.w.scale = 2.0\n\n"
            "    def forward(self, x):\n        if self.w.fast is not None:\n            return F.linear(x, self.w.fast)\n"
            "        return F.linear(x, self.w) * self.w.scale\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        self.w = nnx.Param(jnp.ones((d, d)))\n"
            "        self.w_fast = None\n        self.w_scale = 2.0\n\n"
            "    def __call__(self, x):\n        if self.w_fast is not None:\n            return linear(x, self.w_fast)\n"
            "        return linear(x, self.w[...]) * self.w_scale\n",
        ),
    )

    def leave_Attribute(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression | None:
        match original:
            case cst.Attribute(value=cst.Attribute(value=owner, attr=cst.Name(value=parameter)), attr=cst.Name(value=name)):
                if self.context.is_self(owner) and is_kept_mark(self.context, parameter, name):
                    return cst.Attribute(owner, cst.Name(f"{parameter}_{name}"))
        return None


def is_kept_mark(context: Context, parameter: str, name: str) -> bool:
    """Whether `self.<parameter>.<name>` becomes an attribute of the module."""
    cls, repo = context.cls, context.repo
    if cls is None or name in KNOWN or name.startswith("__") or not repo.is_module_class(cls):
        return False
    line = [*repo.ancestors(cls), *repo.descendants.get(cls.id, ())]
    makers = [model.methods["__init__"] for model in line if "__init__" in model.methods and model.file is context.file]
    stores = [node for maker in makers for node in _attributes(maker) if _own_mark(node) == (parameter, name) and not _is_load(node)]
    if not stores or not all(_is_of_parameter(context, node) for node in stores):
        return False
    if any(f"{parameter}_{name}" in _names(model) for model in line) or any(_looks_up(node, name) for node in _live_nodes(context)):
        return False
    others = [node for node in _live_nodes(context) if isinstance(node, ast.Attribute) and node.attr == name and _hangs_on_tensor(node)]
    models = [model for file in repo.files.values() for model in file.classes.values() if repo.is_module_class(model)]
    building = {id(node) for model in models if "__init__" in model.methods for node in walk(model.methods["__init__"])}
    members = {id(node) for model in models for method in model.methods.values() for node in walk(method)}
    own = all(id(node) in members and _own_mark(node) is not None for node in others)
    own &= not any(
        isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and node.value in others for node in _live_nodes(context)
    )
    return own and all(_is_load(node) or id(node) in building for node in others) and any(_is_load(node) for node in others)


class DropTensorMarks(Rule):
    """Drop attributes of tensors that no module reads: `self.w._optim = {"lr": 0.0}` and `setattr(p, "_no_decay", True)` → nothing.

    An array takes no attributes. A note names what an optimiser of the repository may look for. Declines (a
    hole) where a function that a module reaches reads the attribute.
    """

    KEEP = ("class Plain:\n    def f(self, x):\n        x._optim = 1\n        return x\n",)
    CHANGE = (
        (
            "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
            "        pe = torch.zeros(d)\n        pe.require_grad = False\n        self.w = nn.Parameter(pe)\n"
            "        self.w._no_decay = True\n        setattr(self.w, '_optim', {'lr': 0.1})\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        pe = jnp.zeros(d)\n        self.w = nnx.Param(pe)\n",
        ),
    )

    def leave_SimpleStatementLine(self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine) -> cst.RemovalSentinel | None:
        match original.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=owner, attr=cst.Name(value=name)))])]:
                if self._is_kept(owner, name):
                    return None
            case [
                cst.Expr(value=cst.Call(func=cst.Name("setattr"), args=[cst.Arg(value=owner), cst.Arg(value=cst.SimpleString() as key), _]))
            ]:
                name = key.raw_value
            case _:
                return None
        fact = self.context.observed(owner)
        if name in KNOWN or name.startswith("__") or fact is None or not is_tensor(fact) or "none" in fact.kinds:
            return None
        if self._is_read(name):
            self.context.hole(original, f"{name} is kept on a tensor and read again: an array takes no attributes", "unsupported")
            return None
        line = self.context.span(original).line
        self.context.notes.append(f"{self.context.file.file.path}:{line}: .{name} of a tensor is not kept: tell the optimiser by the name")
        return cst.RemoveFromParent()

    def _is_kept(self, owner: cst.BaseExpression, name: str) -> bool:
        match owner:
            case cst.Attribute(value=receiver, attr=cst.Name(value=parameter)) if self.context.is_self(receiver):
                return is_kept_mark(self.context, parameter, name)
        return False

    def _is_read(self, name: str) -> bool:
        """Whether a function that a module reaches reads an attribute of this name, or looks it up."""
        return any(
            (isinstance(node, ast.Attribute) and node.attr == name and _is_load(node)) or _looks_up(node, name)
            for node in _live_nodes(self.context)
        )


def _live_nodes(context: Context) -> Iterator[ast.AST]:
    """All nodes of the functions that a module reaches."""
    for path, function in context.randomness.live:
        node = context.repo.files[path].functions.get(function)
        yield from walk(node) if node is not None else ()


def _attributes(function: ast.AST) -> list[ast.Attribute]:
    return [node for node in walk(function) if isinstance(node, ast.Attribute)]


def _is_load(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _own_mark(node: ast.Attribute) -> tuple[str, str] | None:
    """The parameter and the name of `self.<parameter>.<name>`."""
    match node:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=parameter), attr=name):
            return parameter, name
    return None


def _is_of_parameter(context: Context, node: ast.Attribute) -> bool:
    """Whether what has an attribute was always a tensor."""
    fact = context.facts.observed.get(span_of(node.value, context.file.lines))
    return fact is not None and is_tensor(fact) and "none" not in fact.kinds


def _hangs_on_tensor(node: ast.Attribute) -> bool:
    """Whether an attribute may be one of a tensor: not where it is that of a module itself."""
    return not (isinstance(node.value, ast.Name) and node.value.id == "self")


def _looks_up(node: ast.AST, name: str) -> bool:
    """Whether a node looks an attribute of this name up: `getattr(x, "name")`."""
    looked_up = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr")
    return looked_up and any(isinstance(one, ast.Constant) and one.value == name for one in node.args)  # type: ignore[attr-defined]


def _names(model: ClassModel) -> set[str]:
    """The names of what a class has and of what it reads."""
    return {*model.methods, *(node.attr for method in model.methods.values() for node in _attributes(method))}
