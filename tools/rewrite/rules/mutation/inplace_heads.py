"""Sequences of layers, and modules around them, that begin with an activation in place: what they are called with holds what that gives afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from migrate_agent.tools.rewrite.analysis.aliases import root, shared_names
from migrate_agent.tools.rewrite.analysis.argument_writes.parameter_writes import argument_names
from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.inplace_effects.layer_lists import Constant, Front, sequence_fronts
from migrate_agent.tools.rewrite.analysis.inplace_effects.untouched_arguments import Untouched, assigned_values
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.mutation.handed_back import mutated

ACTIVATIONS = frozenset(
    f"torch.nn.{name}" for name in "ReLU ReLU6 LeakyReLU ELU SELU CELU SiLU Mish Hardswish Hardsigmoid Hardtanh Threshold".split()
)
AGAIN: Mapping[str, str] = {"torch.nn.ReLU": "jax.nn.relu({x})", "torch.nn.ReLU6": "vendored.relu6({x})"}
"""Activations that leave their own results as they are → their call in JAX. Applied ahead, they change nothing of what is computed."""


class Heads:
    """Answers for the modules that methods of the class at hand call as `self.<attribute>`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._untouched = Untouched(context.repo)

    def applied_ahead(self, model: ClassModel, attribute: str) -> str:
        """The call of JAX, with `{x}` for the argument, that does ahead what `self.<attribute>` does in place to its argument; "" where there is none."""
        return self._applied(model, attribute, {})

    def begins_in_place(self, model: ClassModel, attribute: str) -> bool:
        """Whether each value of `self.<attribute>` is a sequence that begins with an activation in place and a layer whose result is new, or
        with a layer that has a weight, whose result is new too.
        """
        fronts = self._fronts(model, attribute, {})
        return bool(fronts) and all(self._head(model, method, front) or self._is_weighted(method, front) for method, front in fronts)

    def _applied(self, model: ClassModel, attribute: str, constants: Mapping[str, Constant]) -> str:
        fronts = self._fronts(model, attribute, constants)
        calls = (
            {AGAIN.get(self._head(model, method, front), "") for method, front in fronts}
            if fronts
            else self._applied_by_modules(model, attribute)
        )
        return calls.pop() if len(calls) == 1 else ""

    def _fronts(self, model: ClassModel, attribute: str, constants: Mapping[str, Constant]) -> list[tuple[FunctionNode, Front | None]]:
        """The first layers of each sequence that a class gives to an attribute, with the method that does; none where a value is no sequence."""
        values = assigned_values(model, attribute)
        methods = {id(method): method for method, _ in values}
        return (
            [
                (method, front)
                for method in methods.values()
                for front in sequence_fronts(
                    method,
                    lambda target: model.own.get(id(target)) == attribute and not isinstance(getattr(target, "ctx", None), ast.Load),
                    lambda func: self._dotted(func) == "torch.nn.Sequential",
                    constants if method.name == "__init__" else {},
                )
            ]
            if all(isinstance(value, ast.Call) and self._dotted(value.func) == "torch.nn.Sequential" for _, value in values)
            else []
        )

    def _head(self, model: ClassModel, method: FunctionNode, front: Front | None) -> str:
        """The activation in place that a sequence begins with, where its result is handed to a layer that gives a new tensor; or ""."""
        if front is None or len(front.layers) < 2:
            return ""
        first, second = (self._meanings(model, layer) for layer in front.layers[:2])
        names = {self._activation(value) for value in first}
        is_new = bool(second) and all(
            isinstance(value, ast.Call) and self._untouched.by_layer(self._dotted(value.func)) for value in second
        )
        return names.pop() if is_new and len(names) == 1 else ""

    def _is_weighted(self, method: FunctionNode, front: Front | None) -> bool:
        if front is None or not front.layers or not isinstance(first := front.layers[0], ast.Call):
            return False
        dotted = self._dotted(first.func)
        return self._untouched.has_weight(dotted) and self._untouched.by_layer(dotted)

    def _meanings(self, model: ClassModel, layer: ast.expr) -> list[ast.expr]:
        """The expressions that a layer may be: itself, or all values of the attribute that it names."""
        if isinstance(layer, ast.Attribute) and (name := model.own.get(id(layer))):
            return [value for _, value in assigned_values(model, name)]
        return [layer]

    def _activation(self, value: ast.expr) -> str:
        """The activation in place that a call makes: by keyword, or as the last argument by position; or ""."""
        if not isinstance(value, ast.Call):
            return ""
        dotted = self._dotted(value.func)
        flag = next((keyword.value for keyword in value.keywords if keyword.arg == "inplace"), value.args[-1] if value.args else None)
        return dotted if dotted in ACTIVATIONS and isinstance(flag, ast.Constant) and flag.value is True else ""

    def _dotted(self, node: ast.expr) -> str:
        return self._context.facts.dotted.get(span_of(node, self._context.file.lines), "")

    # -- modules of the repository ----------------------------------------------------------------------------------
    def _applied_by_modules(self, model: ClassModel, attribute: str) -> set[str]:
        """What the modules of the repository that a class gives to an attribute do to their argument."""
        calls = set()
        for _, value in assigned_values(model, attribute):
            called = self._context.repo.class_of(self._dotted(value.func)) if isinstance(value, ast.Call) else None
            # What the examples saw the calls change is known of the file at hand.
            if called is None or called.file is not self._context.file or called is model or not isinstance(value, ast.Call):
                return set()
            constructor = called.methods.get("__init__")
            calls.add(self._applied_by_forward(called, _constants(constructor, value)) if constructor else "")
        return calls

    def _applied_by_forward(self, model: ClassModel, constants: Mapping[str, Constant]) -> str:
        """What `forward` does to its first argument, where that is all in one call of a sequence that it makes in any case."""
        forward = model.methods.get("forward")
        names = argument_names(forward) if forward else ()
        if forward is None or len(names) < 2:
            return ""
        name, key = names[1], (model.file.file.path, f"{model.qualname}.forward")
        changing = list(self._changing_calls(forward))
        if len(changing) != 1 or name in mutated(self._context, key):
            return ""
        call, changed = changing[0]
        before = [statement for statement in forward.body if (statement.end_lineno or statement.lineno) < call.lineno]
        statement = forward.body[len(before)]
        is_bound_before = any(
            isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load) for s in before for node in ast.walk(s)
        )
        is_left_before = any(isinstance(node, (ast.Return, ast.Raise)) for s in before for node in ast.walk(s))
        if changed != name or is_bound_before or is_left_before or not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
            return ""
        conditional = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
        if any(isinstance(node, conditional) for node in ast.walk(statement)):
            return ""
        if any(
            _writes_to(node, {name, *shared_names(forward, name, line)})
            for node in ast.walk(forward)
            for line in (getattr(node, "lineno", 0),)
        ):
            return ""
        attribute = model.own.get(id(call.func))
        return self._applied(model, attribute, constants) if attribute else ""

    def _changing_calls(self, function: FunctionNode) -> Iterator[tuple[ast.Call, str]]:
        """The calls that the examples saw change an argument in place, with the argument's name."""
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                for argument in node.args:
                    fact = self._context.facts.observed.get(span_of(argument, self._context.file.lines))
                    if isinstance(argument, ast.Name) and fact is not None and fact.changed:
                        yield node, argument.id


def _constants(constructor: FunctionNode, call: ast.Call) -> dict[str, Constant]:
    """Parameters of a constructor whose values a call or the defaults write out."""
    arguments = constructor.args
    names = [parameter.arg for parameter in [*arguments.posonlyargs, *arguments.args]][1:]
    if any(isinstance(value, ast.Starred) for value in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return {}
    values: dict[str, ast.expr | None] = dict(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=False))
    values |= {parameter.arg: value for parameter, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)}
    values |= dict(zip(names, call.args, strict=False)) | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    return {name: value.value for name, value in values.items() if isinstance(value, ast.Constant) and value.value is not Ellipsis}


def _writes_to(node: ast.AST, names: set[str]) -> bool:
    """Whether a node is a write in place to one of several names, in the syntax of the code itself."""
    match node:
        case ast.AugAssign(target=target):
            return root(target) in names
        case ast.Subscript(value=value, ctx=ast.Store()):
            return root(value) in names
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args, keywords=keywords):
            is_named_so = attr.endswith("_") and not attr.endswith("__")
            handed = [value, *args] if is_named_so else args if any(keyword.arg == "inplace" for keyword in keywords) else []
            return any(root(one) in names for one in handed)
    return False
