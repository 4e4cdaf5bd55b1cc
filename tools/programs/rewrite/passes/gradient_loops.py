"""Loops between `backward()` and the step that give each gradient a new value by itself.

for p in model.parameters():
    p.grad.data.clamp_(-1, 1)        →        grads = jax.tree.map(lambda g: jnp.clip(g, -1, 1), grads)
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.programs.rewrite.names import code

GRADIENT = "g"
METHODS = {"mul_": "*", "div_": "/", "multiply_": "*", "divide_": "/"}
OPERATORS = {"*=": "*", "/=": "/"}


@dataclass(frozen=True)
class GradientLoop:
    """What lists the parameters, and the new value of a gradient `g` as text."""

    parameters: cst.BaseExpression
    value: str

    def line(self, grads: str) -> str:
        """The statement over gradients of that name, or a tuple of several."""
        return f"{grads} = jax.tree.map(lambda {GRADIENT}: {self.value}, {grads})"


def gradient_loop(statement: cst.CSTNode) -> GradientLoop | None:
    """The loop, where it goes through parameters and does one thing to the gradient of each that has one."""
    if not isinstance(statement, cst.For) or statement.orelse is not None:
        return None
    iterated: cst.BaseExpression = statement.iter
    target: cst.BaseExpression = statement.target
    method = iterated.func if isinstance(iterated, cst.Call) else None
    named = isinstance(method, cst.Attribute) and method.attr.value == "named_parameters"
    if named and isinstance(target, cst.Tuple) and len(target.elements) == 2 and isinstance(iterated, cst.Call):
        target = target.elements[1].value
        iterated = iterated.with_changes(func=cst.ensure_type(method, cst.Attribute).with_changes(attr=cst.Name("parameters")))
    small = _only(statement.body, code(target))
    value = _value(small, {f"{code(target)}.grad", f"{code(target)}.grad.data"}) if small is not None else ""
    return GradientLoop(iterated, value) if value else None


def zeroed(statement: cst.CSTNode) -> str:
    """What lists the parameters whose gradients a loop takes away or sets to zero, without its call: `model`, or `optimizer`; ""."""
    if not isinstance(statement, cst.For) or statement.orelse is not None:
        return ""
    lines = list(statement.body.body)
    group = code(statement.target)
    inner = lines[0] if len(lines) == 1 else None
    if isinstance(inner, cst.For) and code(inner.iter) in (f'{group}["params"]', f"{group}['params']"):
        listing, suffix, statement = code(statement.iter), ".param_groups", inner
    else:
        listing, suffix = code(statement.iter), ".parameters()"
    name = code(statement.target)
    small = _only(statement.body, name)
    gradients = (f"{name}.grad", f"{name}.grad.data")
    removed = (
        isinstance(small, cst.Assign) and [code(one.target) for one in small.targets] == [gradients[0]] and code(small.value) == "None"
    )
    zeros = isinstance(small, cst.Expr) and code(small.value) in [f"{one}.zero_()" for one in gradients]
    return listing.removesuffix(suffix) if (removed or zeros) and listing.endswith(suffix) else ""


def _only(block: cst.BaseSuite, name: str) -> cst.BaseSmallStatement | None:
    """The only statement of a loop's body, under conditions that every parameter fulfils which is updated."""
    lines = list(block.body)
    if len(lines) != 1:
        return None
    line = lines[0]
    if isinstance(line, cst.If):
        has_gradient = code(line.test).strip() in (f"{name}.grad is not None", f"{name}.requires_grad")
        return _only(line.body, name) if has_gradient and line.orelse is None else None
    return line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None


def _value(small: cst.BaseSmallStatement, gradients: set[str]) -> str:
    """The new value of the gradient that a statement changes; "" for a statement of another form."""
    if isinstance(small, cst.AugAssign) and code(small.target) in gradients:
        operator = OPERATORS.get(code(small.operator).strip(), "")
        return f"{GRADIENT} {operator} {_operand(small.value)}" if operator and ".grad" not in code(small.value) else ""
    call = small.value if isinstance(small, cst.Expr) else None
    function = call.func if isinstance(call, cst.Call) else None
    if not isinstance(call, cst.Call) or not isinstance(function, cst.Attribute) or code(function.value) not in gradients:
        return ""
    if ".grad" in "".join(code(argument) for argument in call.args) or any(argument.star for argument in call.args):
        return ""
    name = function.attr.value
    if name in METHODS and len(call.args) == 1 and call.args[0].keyword is None:
        return f"{GRADIENT} {METHODS[name]} {_operand(call.args[0].value)}"
    return _clamped(call) if name in ("clamp_", "clip_") else ""


def _clamped(call: cst.Call) -> str:
    bounds = {
        argument.keyword.value if argument.keyword is not None else ("min", "max")[index]: code(argument.value)
        for index, argument in enumerate(call.args[:2])
    }
    if not bounds or len(call.args) > 2 or bounds.keys() - {"min", "max"}:
        return ""
    return f"jnp.clip({GRADIENT}, {bounds.get('min', 'None')}, {bounds.get('max', 'None')})"


def _operand(node: cst.BaseExpression) -> str:
    """An expression as a factor."""
    simple = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.Integer, cst.Float)) or node.lpar
    return code(node) if simple else f"({code(node)})"
