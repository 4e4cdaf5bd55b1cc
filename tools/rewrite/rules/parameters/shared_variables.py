"""Shared parameters: layers that use one weight keep using one variable."""

from __future__ import annotations

import ast

import libcst as cst

from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo, dotted_name
from migrate_agent.tools.rewrite.rules.parameters.variables import variable
from migrate_agent.tools.rewrite.rules.rule import Rule
from migrate_agent.tools.rewrite.tables.helpers import properties
from migrate_agent.tools.rewrite.tables.registry import layers
from migrate_agent.tools.rewrite.tables.templates import fill
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Observed


class ShareVariables(Rule):
    """Share a parameter as a variable: `self.head.weight = self.tok.weight` → `self.head.weight = self.tok.embedding`.

    The variable itself is shared, whatever its layout. `Head(self.tok.weight)` → `Head(self.tok.embedding)`
    likewise, where the constructor of the class keeps its argument. A layer that is made for its parameters
    alone gives them: `self.weight = nnx.Param(fc.weight)`. Declines (a hole) where the target cannot hold a
    variable of the other layout.
    """

    KEEP = ("class Plain:\n    def f(self, a, b):\n        a.weight = b.weight\n",)
    CHANGE = (
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, v, d):\n        super().__init__()\n        self.tok = nn.Embedding(v, d)\n"
            "        self.head = nn.Linear(d, v)\n        self.head.weight = self.tok.weight\n",
            "class M(nnx.Module):\n    def __init__(self, v, d, *, rngs: nnx.Rngs):\n        self.tok = Embedding(v, d, rngs=rngs)\n"
            "        self.head = Linear(d, v, rngs=rngs)\n        self.head.weight = self.tok.embedding\n",
        ),
        (
            "from torch import nn\n\nclass Head(nn.Module):\n    def __init__(self, d, weight):\n        super().__init__()\n"
            "        self.weight = weight\n\nclass M(nn.Module):\n    def __init__(self, v, d):\n        super().__init__()\n"
            "        self.tok = nn.Embedding(v, d)\n        self.head = Head(d, weight=self.tok.weight)\n",
            "class Head(nnx.Module):\n    def __init__(self, d, weight, *, rngs: nnx.Rngs):\n        self.weight = weight\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, v, d, *, rngs: nnx.Rngs):\n        self.tok = Embedding(v, d, rngs=rngs)\n"
            "        self.head = Head(d, weight=self.tok.embedding, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\nclass Heads(nn.Module):\n    def __init__(self, weight):\n        super().__init__()\n"
            "        self.words = Head(weight=weight)\n\n"
            "class Head(nn.Module):\n    def __init__(self, weight):\n        super().__init__()\n        self.tie(weight)\n\n"
            "    def tie(self, weight):\n        self.out = nn.Linear(weight.shape[1], weight.shape[0], bias=False)\n        self.out.weight = weight\n\n"
            "class M(nn.Module):\n    def __init__(self, v, d):\n        super().__init__()\n"
            "        self.tok = nn.Embedding(v, d)\n        self.head = Heads(self.tok.weight)\n",
            "class Heads(nnx.Module):\n    def __init__(self, weight, *, rngs: nnx.Rngs):\n        self.words = Head(weight=weight, rngs=rngs)\n\n\n"
            "class Head(nnx.Module):\n    def __init__(self, weight, *, rngs: nnx.Rngs):\n        self.tie(weight, rngs=rngs)\n\n"
            "    def tie(self, weight, *, rngs: nnx.Rngs):\n        self.out = Linear(weight.shape[1], weight.shape[0], bias=False, rngs=rngs)\n"
            "        self.out.weight = weight\n\n\n"
            "class M(nnx.Module):\n    def __init__(self, v, d, *, rngs: nnx.Rngs):\n        self.tok = Embedding(v, d, rngs=rngs)\n"
            "        self.head = Heads(self.tok.embedding, rngs=rngs)\n",
        ),
        (
            "from torch import nn\n\nclass M(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n        fc = nn.Linear(d, d)\n"
            "        self.weight = fc.weight\n        self.bias = fc.bias\n",
            "class M(nnx.Module):\n    def __init__(self, d, *, rngs: nnx.Rngs):\n        fc = Linear(d, d, rngs=rngs)\n"
            "        self.weight = nnx.Param(fc.weight)\n        self.bias = fc.bias\n",
        ),
    )

    def leave_Arg(self, original: cst.Arg, updated: cst.Arg) -> cst.Arg | None:
        call, source, new = self.context.parent(), original.value, updated.value
        fact = self.context.observed(source)
        if not isinstance(call, cst.Call) or fact is None or fact.kinds != ("parameter",) or not self._is_kept_by(call, original):
            return None
        if variable(self, source) and isinstance(new, cst.Subscript):
            return updated.with_changes(value=new.value)
        if not isinstance(source, cst.Attribute) or not isinstance(new, cst.Attribute):
            return None
        kinds = _layer_names(self.context.observed(source.value))
        templates = {layers()[kind].params.get(source.attr.value, "") for kind in kinds}
        if len(templates) != 1 or not (template := templates.pop()):
            return None
        # A kernel lies transposed, and the class that keeps it reads it in torch's layout.
        if template.endswith(".kernel"):
            self.context.hole(original, "a weight of another layout is shared with something that is no layer", "tied-weight")
            return None
        return updated.with_changes(value=fill(template, {"self": new.value}))

    def _is_kept_by(self, call: cst.Call, argument: cst.Arg) -> bool:
        """Whether this constructs a module of the repository that keeps the argument as it is given: `self.weight = weight`."""
        if self._is_tied_by(call, argument):
            return True
        model = self.context.repo.class_of(self.context.dotted(call.func)) if self.context.dotted(call.func) else None
        if model is None or not self.context.repo.is_module_class(model) or "__init__" not in model.methods or argument.star:
            return False
        position = next(i for i, one in enumerate(call.args) if one is argument)
        names = argument_names(model.methods["__init__"])
        parameter = argument.keyword.value if argument.keyword else names[position + 1] if position + 1 < len(names) else ""
        assignments = (
            node for node in walk(model.methods["__init__"]) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        )
        return any(
            isinstance(node.value, ast.Name) and node.value.id == parameter and id(node.targets[0]) in model.own for node in assignments
        )

    def _is_tied_by(self, call: cst.Call, argument: cst.Arg) -> bool:
        """Whether a constructor, or a method of a module, gives its argument to a layer as its weight, and else reads its shape alone."""
        repo, func = self.context.repo, call.func
        model, name = (repo.class_of(dotted) if (dotted := self.context.dotted(func)) else None), "__init__"
        if model is None and isinstance(func, cst.Attribute):
            fact, name = self.context.observed(func.value), func.attr.value
            kinds = [kind.removeprefix("module:") for kind in fact.kinds] if fact else []
            model = self.context.cls if self.context.is_self(func.value) else repo.class_of(kinds[0]) if len(kinds) == 1 else None
        if model is None or not repo.is_module_class(model) or name not in model.methods or argument.star:
            return False
        position = next(i for i, one in enumerate(call.args) if one is argument)
        names = argument_names(model.methods[name])
        parameter = argument.keyword.value if argument.keyword else names[position + 1] if position + 1 < len(names) else ""
        return bool(parameter) and ties_parameter(repo, model, name, parameter)

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        source, target = original.value, original.targets[0].target
        if not isinstance(source, cst.Attribute) or not isinstance(target, cst.Attribute):
            return None
        fact = self.context.observed(source)
        kinds = _layer_names(self.context.observed(source.value))
        if fact is None or fact.kinds != ("parameter",) or not kinds:
            return None
        name = source.attr.value
        templates = {layers()[kind].params.get(name, "") for kind in kinds}
        if len(templates) != 1 or not (template := templates.pop()):
            return None
        owner = _layer_names(self.context.observed(target.value))
        moved = any(name in properties(layers()[kind].vendored) for kind in kinds)
        # Only a layer that converts the layout as well reads the shared variable rightly.
        if moved and not (owner and all(target.attr.value in properties(layers()[kind].vendored) for kind in owner)):
            # A table lies as torch's does, so that a class of the repository reads it as its own parameter.
            if not template.endswith(".kernel") and self._is_own_parameter(target) and isinstance(updated.value, cst.Attribute):
                return updated.with_changes(value=fill(template, {"self": updated.value.value}))
            # Nothing else reads the layer's variable, so a copy in torch's layout is as good as sharing it.
            if self._is_made_for_parameters(source) and len(original.targets) == 1:
                return updated.with_changes(value=self.context.build("nnx.Param({value})", value=updated.value))
            self.context.hole(original, "a weight of another layout is shared with something that is no layer", "tied-weight")
            return None
        if not isinstance(updated.value, cst.Attribute):
            return None
        return updated.with_changes(value=fill(template, {"self": updated.value.value}))

    def _is_own_parameter(self, target: cst.Attribute) -> bool:
        """Whether a target is a parameter that a module class of the repository, which derives from no layer, has made for itself."""
        fact = self.context.observed(target.value)
        names = [kind.removeprefix("module:") for kind in fact.kinds] if fact else []
        repo, kept = self.context.repo, self.context.observed(target)
        for model in (repo.class_of(name) for name in names):
            bases = [base for one in repo.ancestors(model) for base in repo.bases(one)] if model else []
            if model is None or not repo.is_module_class(model) or any(base in layers() for base in bases):
                return False
        return bool(names) and kept is not None and kept.kinds == ("parameter",)

    def _is_made_for_parameters(self, source: cst.Attribute) -> bool:
        """Whether the layer is a local variable of which nothing but its parameters is used, and this one only here."""
        function = self.context.function
        if function is None or not isinstance(source.value, cst.Name):
            return False
        uses = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == source.value.value]
        reads = [node for node in ast.walk(function) if isinstance(node, ast.Attribute) and node.value in uses]
        plain = all(isinstance(node.ctx, ast.Load) and node.attr in ("weight", "bias") for node in reads)
        once = [node.attr for node in reads].count(source.attr.value) == 1
        return plain and once and len(uses) == len(reads) + 1


SHAPES = frozenset({"shape", "size", "ndim", "dim", "dtype", "numel"})
MOST_CALLS = 3


def ties_parameter(repo: Repo, model: ClassModel, method: str, parameter: str, depth: int = MOST_CALLS) -> bool:
    """Whether a method gives a parameter to a layer, `self.decoder.weight = weight`, itself or by its own methods and by modules that it constructs, and
    else reads its shape alone."""
    function = model.methods.get(method)
    if function is None or not depth:
        return False
    parents = {child: node for node in walk(function) for child in ast.iter_child_nodes(node)}
    ties = False
    for load in [node for node in walk(function) if isinstance(node, ast.Name) and node.id == parameter]:
        around = parents.get(load)
        match around:
            case ast.Attribute(attr=name) if name in SHAPES:
                continue
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                continue
            case ast.Assign(targets=[ast.Attribute(value=ast.Attribute())], value=value) if value is load:
                ties = True
            case ast.Call() | ast.keyword():
                call = parents.get(around) if isinstance(around, ast.keyword) else around
                called = _called(repo, model, call) if isinstance(call, ast.Call) else None
                if called is None or not isinstance(call, ast.Call) or not (name := _taken_as(*called, call, around, load)):
                    return False
                if not ties_parameter(repo, *called, name, depth - 1):
                    return False
                ties = True
            case _:
                return False
    return ties


def _called(repo: Repo, model: ClassModel, call: ast.Call) -> tuple[ClassModel, str] | None:
    """The class and the method that a call in a method of `model` reaches: one of its own, or the constructor of a module."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in model.methods:
            return model, name
    other = repo.class_of(dotted) if (dotted := dotted_name(call.func, model.file)) else None
    return (other, "__init__") if other is not None and repo.is_module_class(other) and "__init__" in other.methods else None


def _taken_as(model: ClassModel, method: str, call: ast.Call, around: ast.AST, argument: ast.expr) -> str:
    """The name under which a method takes an argument; "" where none does."""
    if isinstance(around, ast.keyword):
        return around.arg or ""
    names = argument_names(model.methods[method])
    position = call.args.index(argument) + 1 if argument in call.args else len(names)
    return names[position] if position < len(names) else ""


def _layer_names(fact: Observed | None) -> list[str]:
    """The torch layers that an expression is, where it is nothing else."""
    names = [kind.removeprefix("module:") for kind in fact.kinds] if fact else []
    return names if names and all(name in layers() for name in names) else []
