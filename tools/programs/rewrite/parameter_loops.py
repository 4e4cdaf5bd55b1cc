"""Loops over all parameters or buffers of modules that give each a new value: averages of weights, weight clipping, copies.

    for p, ema_p in zip(model.parameters(), ema_model.parameters()):
        ema_p.data.mul_(decay).add_(p.data, alpha=1 - decay)

becomes

    nnx.update(ema_model, jax.tree.map(lambda p, ema_p: ema_p * decay + p * (1 - decay), nnx.state(model, nnx.Param), nnx.state(ema_model, nnx.Param)))
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body
from migrate_agent.tools.programs.rewrite.names import code, read

KINDS = {
    "parameters": "nnx.Param",
    "buffers": "nnx.Not(nnx.Any(nnx.Param, nnx.RngState))",
    # Parameters and buffers: what `passes.state_loops` says of state dictionaries.
    "state_tensors": "nnx.Not(nnx.RngState)",
}
"""Method of a module → the filter of the same variables."""


@dataclass(frozen=True)
class ParameterLoop:
    """A loop over variables of modules: the names of its variables, the expressions of the modules, and the filter of each."""

    names: tuple[str, ...]
    modules: tuple[cst.BaseExpression, ...]
    filters: tuple[str, ...]
    statement: cst.BaseSmallStatement

    def thawed(self) -> str:
        """The module whose parameters the loop takes gradients of again, or ""."""
        text = code(self.statement).replace(" ", "")
        name = self.names[0]
        alone = len(self.names) == 1 and text in (f"{name}.requires_grad=True", f"{name}.requires_grad_(True)", f"{name}.requires_grad_()")
        return code(self.modules[0]) if alone else ""

    def frozen(self) -> str:
        """The module whose parameters the loop takes no gradients of, or ""."""
        text = code(self.statement).replace(" ", "")
        name = self.names[0]
        alone = len(self.names) == 1 and text in (f"{name}.requires_grad=False", f"{name}.requires_grad_(False)")
        return code(self.modules[0]) if alone else ""


def parameter_loop(loop: cst.For) -> ParameterLoop | None:
    """The loop, where it goes through the parameters or buffers of modules and consists of one statement."""
    calls = [loop.iter]
    targets = [loop.target]
    if isinstance(loop.iter, cst.Call) and code(loop.iter.func) == "zip" and isinstance(loop.target, cst.Tuple):
        calls, targets = [a.value for a in loop.iter.args], [e.value for e in loop.target.elements]  # type: ignore[misc]
    lines = list(body(loop.body))
    small = lines[0].body[0] if len(lines) == 1 and isinstance(lines[0], cst.SimpleStatementLine) else None
    if small is None or len(calls) != len(targets) or not all(isinstance(target, cst.Name) for target in targets):
        return None
    modules, filters = [], []
    for call in calls:
        if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute) or call.func.attr.value not in KINDS:
            return None
        modules.append(call.func.value)
        filters.append(KINDS[call.func.attr.value])
    return ParameterLoop(tuple(code(target) for target in targets), tuple(modules), tuple(filters), small)


def update_statement(loop: ParameterLoop) -> cst.BaseStatement | None:
    """The update of the module that the loop writes to; `None` where its statement has another form."""
    new = _new_value(loop.statement)
    if new is None or new[0] not in loop.names:
        return None
    name, value = new
    value = value.visit(_WithoutData(loop.names))  # type: ignore[assignment]
    if ".grad" in code(value) or not isinstance(value, cst.BaseExpression):
        return None
    # Only what the value reads is handed on, and first what is written.
    used = [n for n in loop.names if n == name or n in read(value)]
    used = used if name in read(value) else [n for n in used if n != name] or [name]
    states = [f"nnx.state({code(loop.modules[i])}, {loop.filters[i]})" for i in map(loop.names.index, used)]
    # A copy, since the step gives the memory of what it updates to its new values.
    copied = isinstance(value, cst.Name)
    function = cst.parse_expression("jnp.copy") if copied else cst.Lambda(cst.Parameters([cst.Param(cst.Name(n)) for n in used]), value)
    text: cst.Call = cst.parse_expression(f"nnx.update({code(loop.modules[loop.names.index(name)])}, jax.tree.map(f, {', '.join(states)}))")  # type: ignore[assignment]
    mapped = text.args[1].value
    assert isinstance(mapped, cst.Call)
    mapped = mapped.with_changes(args=[mapped.args[0].with_changes(value=function), *mapped.args[1:]])
    return cst.SimpleStatementLine([cst.Expr(text.with_changes(args=[text.args[0], text.args[1].with_changes(value=mapped)]))])


def _new_value(small: cst.BaseSmallStatement) -> tuple[str, cst.BaseExpression] | None:
    """The name of the variable that a statement writes to, and its new value."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
        if isinstance(target, cst.Attribute) and target.attr.value == "data" and isinstance(target.value, cst.Name):
            return target.value.value, small.value
        return None
    return _chain(small.value) if isinstance(small, cst.Expr) else None


def _chain(node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """`p.data.mul_(a).add_(b)` as the name `p` and the value `p.mul(a).add(b)`."""
    if isinstance(node, cst.Name):
        return node.value, node
    if isinstance(node, cst.Attribute) and node.attr.value == "data":
        return _chain(node.value)
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or not node.func.attr.value.endswith("_"):
        return None
    inner = _chain(node.func.value)
    if inner is None:
        return None
    name, value = inner
    method = node.func.attr.value.removesuffix("_")
    if method == "copy":
        return name, node.args[0].value
    return name, node.with_changes(func=node.func.with_changes(value=value, attr=cst.Name(method)))


class _WithoutData(cst.CSTTransformer):
    """`p.data` → `p`."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self._names = names

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """Drop `data` and `detach`."""
        plain = updated_node.attr.value == "data" and isinstance(updated_node.value, cst.Name) and updated_node.value.value in self._names
        return updated_node.value if plain else updated_node
