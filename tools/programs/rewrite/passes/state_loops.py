"""Loops over the entries of state dictionaries that give each tensor of a module a new value go through the tensors themselves.

msd = model.state_dict()
for k, v in average.state_dict().items():       →       for kept, p in zip(average.state_tensors(), model.state_tensors()):
    v.copy_(v * decay + (1 - decay) * msd[k])               kept.data.copy_(kept * decay + (1 - decay) * p)

`state_tensors` is no method of torch: it stands for the parameters and buffers that a rewrite updates together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.core import call_of
from migrate_agent.tools.programs.rewrite.names import FreeNames, bound, code, name_of, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

TENSORS = "state_tensors"
FLOATING = ("{}.dtype.is_floating_point", "{}.is_floating_point()", "torch.is_floating_point({})")


@dataclass
class Entries:
    """What a loop over a state dictionary goes through: its key, the name of an entry's value ("": none), and whose state each dictionary is."""

    key: str
    value: str
    owner: str
    states: Mapping[str, str]
    used: list[str] = field(default_factory=list)
    """The modules whose entries are read or written, in order."""

    def module_of(self, node: cst.BaseExpression) -> str:
        """The module whose entry under the loop's key an expression is; ""."""
        while isinstance(node, (cst.Attribute, cst.Call)):
            inner = node.func if isinstance(node, cst.Call) else node
            if not isinstance(inner, cst.Attribute) or inner.attr.value not in ("data", "detach", "clone"):
                return ""
            node = inner.value
        if isinstance(node, cst.Name) and node.value == self.value:
            return self.owner
        index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
        if not isinstance(node, cst.Subscript) or not isinstance(index, cst.Index) or code(index.value) != self.key:
            return ""
        return self.states.get(code(node.value), "") or _state_of(node.value)


class StateLoops(ScriptPass):
    """One pass over a script."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self._free = FreeNames(text_of(module))

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        """The loops of a block, and the dictionaries that they go through."""
        lines = self._changed(list(updated_node.body))
        return updated_node if lines is None else updated_node.with_changes(body=lines)

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """The same at the top of the file."""
        lines = self._changed(list(updated_node.body))
        return updated_node if lines is None else updated_node.with_changes(body=lines)

    def _changed(self, lines: list[Any], known: Mapping[str, str] | None = None) -> list[Any] | None:
        """The lines of a block with loops over tensors; `None` where nothing changes. `known` are the dictionaries of the block around it."""
        states = dict(known or {})
        result = list(lines)
        for index, line in enumerate(lines):
            call = call_of(line)
            names = bound(line)
            states = {name: owner for name, owner in states.items() if name not in names}
            if call is not None and len(names) == 1 and (owner := _state_of(call)):
                states[names[0]] = owner
            if isinstance(line, cst.With) and (inner := self._changed(list(line.body.body), states)) is not None:
                result[index] = line.with_changes(body=line.body.with_changes(body=inner))
                self.origin[result[index]] = self.origin.get(line, line)
            loop = self._loop(line, states, lines[index + 1 :]) if isinstance(line, cst.For) else None
            if loop is not None:
                new, loaded = loop
                result[index] = new
                if loaded is not None:
                    result[index + 1] = None
        if all(new is old for new, old in zip(result, lines, strict=True)):
            return None
        kept = [line for line in result if line is not None]
        return [line for line in kept if not self._is_idle(line, kept)]

    def _is_idle(self, line: Any, lines: Sequence[Any]) -> bool:
        """Whether a statement only names a state dictionary that nothing of its block reads."""
        call, names = call_of(line), bound(line) if isinstance(line, cst.SimpleStatementLine) else []
        alone = call is not None and len(names) == 1 and "." not in names[0] and bool(_state_of(call))
        return alone and not any(names[0] in read(other) for other in lines if other is not line)

    def _loop(self, loop: cst.For, states: Mapping[str, str], later: Sequence[Any]) -> tuple[Any, Any] | None:
        """The loop over tensors, and the statement behind it that loads what it wrote into a dictionary (`None`: it wrote into the tensors)."""
        entries = _entries(loop, states)
        written = _written(loop, entries) if entries is not None else None
        if entries is None or written is None:
            return None
        target, value, in_place = written
        owner = entries.module_of(target)
        loaded = None
        if not in_place:
            loaded = next(iter(later), None)
            dictionary = code(cst.ensure_type(target, cst.Subscript).value) if isinstance(target, cst.Subscript) else ""
            if not dictionary or loaded is None or code(loaded).strip() != f"{owner}.load_state_dict({dictionary})":
                return None
        others = [one for one in dict.fromkeys(_modules(value, entries)) if one != owner]
        if not owner or len(others) > 1:
            return None
        names = {owner: self._free.pick("kept", "kept_value"), **{one: self._free.pick("p", "value", "other") for one in others}}
        self._free.taken -= set(names.values())
        new_value = value.visit(_Named(entries, names, self.origin))
        if not isinstance(new_value, cst.BaseExpression) or entries.key in read(new_value) or entries.value in read(new_value):
            return None
        text = (
            f"for {names[owner]} in {owner}.{TENSORS}():\n    {names[owner]}.data.copy_(x)\n"
            if not others
            else f"for {', '.join(names.values())} in zip({', '.join(f'{one}.{TENSORS}()' for one in names)}):\n    {names[owner]}.data.copy_(x)\n"
        )
        made = cst.ensure_type(cst.parse_statement(text), cst.For)
        call = made.body.body[0].body[0].value  # type: ignore[union-attr]
        new = made.deep_replace(call.args[0].value, new_value)
        assert isinstance(new, cst.For)
        new = new.with_changes(leading_lines=loop.leading_lines)
        self.origin[new] = self.origin.get(loop, loop)
        return new, loaded


def _state_of(node: cst.BaseExpression) -> str:
    """The module in `model.state_dict()`, by its name; ""."""
    function = node.func if isinstance(node, cst.Call) and not node.args else None
    return name_of(function.value) if isinstance(function, cst.Attribute) and function.attr.value == "state_dict" else ""


def _entries(loop: cst.For, states: Mapping[str, str]) -> Entries | None:
    """What a loop goes through, where that is a state dictionary."""
    iterated, method = loop.iter, "keys"
    if isinstance(iterated, cst.Call) and isinstance(iterated.func, cst.Attribute) and iterated.func.attr.value in ("keys", "items"):
        method, iterated = iterated.func.attr.value, iterated.func.value
    owner = states.get(code(iterated), "") or _state_of(iterated)
    names = [code(one.value) for one in loop.target.elements] if isinstance(loop.target, cst.Tuple) else [code(loop.target)]
    if not owner or loop.orelse is not None or len(names) != (2 if method == "items" else 1):
        return None
    return Entries(names[0], names[1] if method == "items" else "", owner, states)


def _written(loop: cst.For, entries: Entries) -> tuple[cst.BaseExpression, cst.BaseExpression, bool] | None:
    """What a loop writes, its new value, and whether it does so in place; `None` for a loop of another form."""
    lines = list(loop.body.body)
    if len(lines) == 1 and isinstance(lines[0], cst.If) and lines[0].orelse is None:
        condition = code(lines[0].test).strip()
        if condition not in [form.format(entries.value) for form in FLOATING if entries.value]:
            return None
        lines = list(lines[0].body.body)
    target: cst.BaseExpression | None = None
    value: cst.BaseExpression | None = None
    for line in lines:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
        step = _step(small, entries, value) if small is not None else None
        if step is None or (target is not None and code(step[0]) != code(target)):
            return None
        target, value = step[0], step[1]
        in_place = step[2]
        if not in_place and len(lines) > 1:
            return None
    return (target, value, in_place) if target is not None and value is not None else None


def _step(
    small: cst.BaseSmallStatement, entries: Entries, before: cst.BaseExpression | None
) -> tuple[cst.BaseExpression, cst.BaseExpression, bool] | None:
    """What one statement writes, its value, and whether in place; `before` is the value that it had by then."""
    if isinstance(small, cst.AugAssign) and entries.module_of(small.target):
        operators = {"*=": cst.Multiply(), "+=": cst.Add(), "-=": cst.Subtract(), "/=": cst.Divide()}
        operator: Any = operators.get(code(small.operator).strip())
        left = _in_parentheses(before) if before is not None else small.target
        return (small.target, cst.BinaryOperation(left, operator, _in_parentheses(small.value)), True) if operator is not None else None
    if isinstance(small, cst.Assign) and len(small.targets) == 1 and before is None:
        target = small.targets[0].target
        plain = isinstance(target, cst.Subscript) and bool(entries.module_of(target))
        return (target, small.value, False) if plain else None
    call = small.value if isinstance(small, cst.Expr) else None
    function = call.func if isinstance(call, cst.Call) else None
    copies = isinstance(function, cst.Attribute) and function.attr.value == "copy_" and isinstance(call, cst.Call) and len(call.args) == 1
    if not copies or not isinstance(function, cst.Attribute) or not isinstance(call, cst.Call) or not entries.module_of(function.value):
        return None
    return function.value, call.args[0].value, True


def _in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    simple = isinstance(node, (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.BaseNumber)) or node.lpar
    return node if simple else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _modules(value: cst.BaseExpression, entries: Entries) -> list[str]:
    """The modules whose entries an expression reads."""
    nodes = m.findall(value, m.MatchIfTrue(lambda node: isinstance(node, cst.BaseExpression)))
    found = [entries.module_of(node) for node in nodes if isinstance(node, cst.BaseExpression)]
    return [one for one in found if one]


class _Named(cst.CSTTransformer):
    """Puts the names of tensors in place of entries of state dictionaries."""

    def __init__(self, entries: Entries, names: Mapping[str, str], origin: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._entries, self._names, self._origin = entries, names, origin

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """The name of an entry; which old node each new one stands for."""
        owner = self._entries.module_of(original_node) if isinstance(original_node, cst.BaseExpression) else ""
        if owner:
            return cst.Name(self._names[owner])
        result = super().on_leave(original_node, updated_node)
        if isinstance(result, cst.CSTNode):
            self._origin.setdefault(result, self._origin.get(original_node, original_node))
        return result
