"""Optimizers inside of objects that set their rates: their step stands where the object's is called, and the object sets rates alone.

class Warmup:                                            class Warmup:
    def __init__(self, optimizer): …                         def __init__(self, optimizer): …
    def step(self):                                          def step(self):
        self.count += 1                                          self.count += 1
        for group in self.optimizer.param_groups:        →       for group in self.optimizer.param_groups:
            group["lr"] = self.rate()                                group["lr"] = self.rate()
        self.optimizer.step()
                                                         optimizer = Adam(model.parameters())
warmup = Warmup(Adam(model.parameters()))                warmup = Warmup(optimizer)
warmup.step()                                            warmup.step()
                                                         optimizer.step()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.core import blocks, body, call_of, is_optimizer
from migrate_agent.tools.programs.rewrite.names import SELF, FreeNames, Imports, bound, code, name_of, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass


@dataclass(frozen=True, eq=False)
class Wrapped:
    """An object around an optimizer: its class, the attribute that holds the optimizer, the statement that constructs the object with the argument for the
    optimizer, the names of both, and the methods whose last statement is the step, and those that only set gradients to zero.
    """

    node: cst.ClassDef
    attribute: str
    construction: cst.SimpleStatementLine
    argument: cst.Arg
    name: str
    optimizer: str
    stepping: frozenset[str]
    zeroing: frozenset[str]

    def last(self, method: cst.FunctionDef) -> cst.CSTNode | None:
        """The step that a method ends with."""
        return list(body(method.body))[-1] if method.name.value in self.stepping else None


class WrappedOptimizers(ScriptPass):
    """One pass over a script."""

    def __init__(self, module: cst.Module, imports: Imports) -> None:
        super().__init__()
        self._objects = list(_wrapped(module, imports))
        self._methods = {method: one for one in self._objects for method in _methods(one.node).values()}

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> Any:
        """A method without the step; a function that is handed the object takes the optimizer out of it."""
        own = self._methods.get(original_node)
        if own is not None:
            name = original_node.name.value
            lines = list(body(updated_node.body))[:-1]
            if name in own.zeroing or (name in own.stepping and not lines):
                return cst.RemoveFromParent()
            return updated_node.with_changes(body=updated_node.body.with_changes(body=lines)) if name in own.stepping else updated_node
        for one in self._objects:
            if one.name in [parameter.name.value for parameter in original_node.params.params]:
                line = cst.parse_statement(f"{one.optimizer} = {one.name}.{one.attribute}")
                self._stands_for_optimizer(line, one)
                updated_node = updated_node.with_changes(body=updated_node.body.with_changes(body=[line, *updated_node.body.body]))
        return updated_node

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """The construction, and what calls the object."""
        for one in self._objects:
            if original_node is one.construction:
                return self._constructed(one, updated_node)
            method = _method_called(original_node, one.name)
            if method in one.zeroing:
                return self._called(one, "zero_grad", updated_node, original_node)
            if method in one.stepping:
                alone = len(list(body(_methods(one.node)[method].body))) == 1
                step = self._called(one, "step", updated_node, original_node)
                self.origin[updated_node] = original_node
                return step if alone else cst.FlattenSentinel([updated_node, step.with_changes(leading_lines=())])
        return updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """`warmup.optimizer` is the optimizer."""
        for one in self._objects:
            if original_node.attr.value == one.attribute and name_of(original_node.value) == one.name:
                return cst.Name(one.optimizer)
        return updated_node

    def _constructed(self, one: Wrapped, line: cst.SimpleStatementLine) -> Any:
        """`warmup = Warmup(Adam(…))` → the optimizer before it."""
        if isinstance(one.argument.value, cst.Name):
            return line
        call = cst.ensure_type(cst.ensure_type(line.body[0], cst.Assign).value, cst.Call)
        arguments = list(call.args)
        index = next(i for i, argument in enumerate(arguments) if self.origin.get(argument, argument) is one.argument)
        target: Any = cst.parse_expression(one.optimizer)
        construction = cst.SimpleStatementLine(
            [cst.Assign([cst.AssignTarget(target)], arguments[index].value)], leading_lines=line.leading_lines
        )
        arguments[index] = arguments[index].with_changes(value=cst.Name(one.optimizer))
        small = cst.ensure_type(line.body[0], cst.Assign)
        rest = line.with_changes(body=[small.with_changes(value=call.with_changes(args=arguments))], leading_lines=())
        self.origin |= {construction: one.construction, rest: one.construction}
        return cst.FlattenSentinel([construction, rest])

    def _called(self, one: Wrapped, method: str, line: cst.SimpleStatementLine, original: cst.CSTNode) -> cst.SimpleStatementLine:
        """`optimizer.step()`."""
        new = cst.ensure_type(cst.parse_statement(f"{one.optimizer}.{method}()"), cst.SimpleStatementLine)
        new = new.with_changes(leading_lines=line.leading_lines)
        self.origin[new] = original
        self._stands_for_optimizer(new, one)
        return new

    def _stands_for_optimizer(self, node: cst.CSTNode, one: Wrapped) -> None:
        """Let the optimizer's names in a new statement be what the object's attribute was seen to be."""
        seen = m.findall(one.node, m.Attribute(value=m.Name(SELF), attr=m.Name(one.attribute)))
        uses = [use for use in seen if isinstance(use, cst.CSTNode)]
        for name in m.findall(node, m.Name(one.optimizer)):
            if isinstance(name, cst.CSTNode) and uses:
                self.origin[name] = uses[-1]


def _methods(cls: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    return {one.name.value: one for one in body(cls.body) if isinstance(one, cst.FunctionDef)}


def _wrapped(module: cst.Module, imports: Imports) -> Iterator[Wrapped]:
    """The objects of a script around one optimizer each, of which it makes one."""
    free = FreeNames(text_of(module))
    for cls in module.body:
        attribute, index, parameter = _held(cls) if isinstance(cls, cst.ClassDef) and not _has_bases(cls) else ("", 0, "")
        if not isinstance(cls, cst.ClassDef) or not attribute:
            continue
        stepping = frozenset(name for name, one in _methods(cls).items() if _ends_with(one, f"{SELF}.{attribute}.step()"))
        zeroing = frozenset(
            name for name, one in _methods(cls).items() if [code(s).strip() for s in body(one.body)] == [f"{SELF}.{attribute}.zero_grad()"]
        )
        steps = sum(code(call).strip() == f"{SELF}.{attribute}.step()" for call in m.findall(cls, m.Call()) if isinstance(call, cst.Call))
        construction = [
            s for block, _ in blocks(module) for s in body(block) if (c := call_of(s)) is not None and code(c.func) == cls.name.value
        ]
        if not stepping or steps != len(stepping) or len(construction) != 1 or not isinstance(construction[0], cst.SimpleStatementLine):
            continue
        call, names = call_of(construction[0]), bound(construction[0])
        arguments = [a for i, a in enumerate(call.args if call is not None else ()) if _is_for(a, i, index, parameter)]
        if len(arguments) != 1 or len(names) != 1 or "." in names[0]:
            continue
        (argument,) = arguments
        inner = argument.value
        constructs = isinstance(inner, cst.Call) and is_optimizer(imports.of(inner.func))
        if constructs or isinstance(inner, cst.Name):
            name = (
                inner.value if isinstance(inner, cst.Name) else free.pick(attribute.strip("_"), f"{names[0]}_optimizer", "inner_optimizer")
            )
            yield Wrapped(cls, attribute, construction[0], argument, names[0], name, stepping, zeroing)


def _has_bases(cls: cst.ClassDef) -> bool:
    return bool({code(base.value) for base in cls.bases} - {"object"})


def _held(cls: cst.ClassDef) -> tuple[str, int, str]:
    """The attribute that is given an argument of the constructor and whose `step()` the class calls, with the argument's place and name."""
    init = _methods(cls).get("__init__")
    names = [one.name.value for one in init.params.params[1:]] if init is not None else []
    rows = [pair for line in body(init.body) for pair in _assigned(line)] if init is not None else []
    for attribute, value in rows:
        if value in names and f"{SELF}.{attribute}.step()" in code(cls) and sum(one == attribute for one, _ in rows) == 1:
            return attribute, names.index(value), value
    return "", 0, ""


def _assigned(line: cst.CSTNode) -> Iterator[tuple[str, str]]:
    """Attribute and name of `self.a = b`, and of `self.a, self.b = c, d`."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return
    target, value = small.targets[0].target, small.value
    pairs: Sequence[tuple[cst.CSTNode, cst.CSTNode]] = [(target, value)]
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        pairs = [(one.value, other.value) for one, other in zip(target.elements, value.elements, strict=False)]
    for one, other in pairs:
        if isinstance(one, cst.Attribute) and code(one.value) == SELF and isinstance(other, cst.Name):
            yield one.attr.value, other.value


def _ends_with(method: cst.FunctionDef, text: str) -> bool:
    """Whether a method's last statement is a call, and nothing leaves it before."""
    lines = list(body(method.body))
    return bool(lines) and code(lines[-1]).strip() == text and not m.findall(method, m.Return())


def _is_for(argument: cst.Arg, number: int, index: int, parameter: str) -> bool:
    return argument.keyword.value == parameter if argument.keyword is not None else number == index


def _method_called(line: cst.SimpleStatementLine, name: str) -> str:
    """The method of an object in the statement `name.method()`, or ""."""
    call = call_of(line)
    function = call.func if call is not None and not call.args and not bound(line) else None
    return function.attr.value if isinstance(function, cst.Attribute) and code(function.value) == name else ""
