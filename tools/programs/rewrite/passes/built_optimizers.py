"""Functions that construct an optimizer or a scheduler stand where they are called, with all their branches.

def build(name, model):                              if args.opt == "adam":
    if name == "adam":                                   optimizer = Adam(model.parameters())
        return Adam(model.parameters())      →       elif args.opt == "sgd":
    elif name == "sgd":                                  optimizer = SGD(model.parameters(), lr=0.1)
        return SGD(model.parameters(), lr=0.1)       else:
    raise ValueError(name)                               raise ValueError(args.opt)

optimizer = build(args.opt, model)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.core import body, in_order, is_optimizer
from migrate_agent.tools.programs.rewrite.names import FreeNames, Imports, bound, chain_of, code, name_of, read
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

SCHEDULERS = "torch.optim.lr_scheduler."
INSIDE = m.Yield() | m.Await() | m.Global() | m.Nonlocal() | m.FunctionDef() | m.ClassDef() | m.Lambda()


class BuiltOptimizers(ScriptPass):
    """One pass over a script. `kinds` gives what an expression was seen to be."""

    def __init__(self, module: cst.Module, imports: Imports, kinds: Callable[[cst.CSTNode], Sequence[str]]) -> None:
        super().__init__()
        self._kinds, self._module = kinds, module
        functions = [line for line in module.body if isinstance(line, cst.FunctionDef)]
        names = [one.name.value for one in functions]
        self._builders = {one.name.value: one for one in functions if names.count(one.name.value) == 1 and _builds(one, imports)}
        self._placed: set[str] = set()

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """`optimizer = build(model)` → what the function does."""
        small = original_node.body[0] if len(original_node.body) == 1 else None
        call = small.value if isinstance(small, cst.Assign) and len(small.targets) == 1 and name_of(small.targets[0].target) else None
        builder = self._builders.get(code(call.func)) if isinstance(call, cst.Call) else None
        if not isinstance(small, cst.Assign) or not isinstance(call, cst.Call) or builder is None or not self._is_built(call):
            return updated_node
        values = _arguments(builder, call)
        if values is None:
            return updated_node
        lines = self._lines(builder, small.targets[0].target, values)
        self._placed.add(builder.name.value)
        first = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        self.origin[first] = self.origin.get(lines[0], original_node)
        return cst.FlattenSentinel([first, *lines[1:]])

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """A function that nothing calls any more goes."""
        used = {name for line in updated_node.body if not _defines(line, self._placed) for name in read(line)}
        lines = [line for line in updated_node.body if not _defines(line, self._placed - used)]
        return updated_node.with_changes(body=lines) if len(lines) < len(updated_node.body) else updated_node

    def _is_built(self, call: cst.Call) -> bool:
        kinds = self._kinds(call)
        return bool(kinds) and all(kind.startswith("object:torch.optim.") for kind in kinds)

    def _lines(
        self, builder: cst.FunctionDef, target: cst.BaseAssignTargetExpression, values: Mapping[str, cst.BaseExpression]
    ) -> list[Any]:
        """The statements of a function, for these values of its parameters."""
        statements = [line for line in body(builder.body) if not _is_docstring(line)]
        own = dict.fromkeys(name for line in in_order(builder.body) for name in bound(line) if name not in values)
        result = _last_name(statements)
        free = FreeNames(self._module.with_deep_changes(builder, body=cst.IndentedBlock([])).code)
        names: dict[str, cst.BaseExpression] = {name: cst.Name(free.pick(name, f"{name}_built")) for name in own if name != result}
        if result:
            names[result] = target
            statements = statements[:-1]
        put = _Put({**values, **names}, self.origin)
        return [line.visit(put) for line in _assigned([_again(self.origin, line) for line in statements], target, self.origin)]


def _again(origin: dict[cst.CSTNode, cst.CSTNode], node: Any) -> Any:
    """A second statement like one, whose nodes stand for the same old ones."""
    new = node.deep_clone()
    todo = [(node, new)]
    while todo:
        old, one = todo.pop()
        origin[one] = origin.get(old, old)
        todo += zip(old.children, one.children, strict=True)
    return new


def _builds(function: cst.FunctionDef, imports: Imports) -> bool:
    """Whether a function constructs optimizers or schedulers, leaves only at its ends, and takes plain parameters."""
    parameters = function.params
    stars = isinstance(parameters.star_arg, cst.Param) or parameters.star_kwarg is not None or parameters.kwonly_params
    calls = [call for call in m.findall(function, m.Call()) if isinstance(call, cst.Call)]
    constructed = [imports.of(call.func) for call in calls]
    nested = m.findall(function.body, INSIDE)
    names = {one.name.value for one in parameters.params}
    rebound = any(names & set(bound(line)) for line in in_order(function.body))
    statements = [line for line in body(function.body) if not _is_docstring(line)]
    ends = _leaves_at_its_ends(statements)
    constructs = any(is_optimizer(dotted) or dotted.startswith(SCHEDULERS) for dotted in constructed)
    return constructs and ends and not (stars or nested or rebound or function.decorators or function.asynchronous)


def _returns(node: cst.CSTNode) -> bool:
    return bool(m.findall(node, m.Return()))


def _leaves_at_its_ends(lines: Sequence[cst.CSTNode]) -> bool:
    """Whether a block ends with a value, an error, or a choice whose branches do; a choice that leaves in the middle leaves in each of its branches."""
    for index, line in enumerate(lines):
        last = index == len(lines) - 1
        if isinstance(line, cst.If) and (last or _returns(line)):
            branches, closed = _branches(line)
            if not all(map(_leaves_at_its_ends, branches)) or closed != last:
                return False
            if closed:
                return True
        elif last:
            return _is_end(line)
        elif _returns(line):
            return False
    return False


def _branches(choice: cst.If) -> tuple[list[Sequence[cst.CSTNode]], bool]:
    """The blocks of a choice, and whether one of them runs in any case."""
    blocks, part = [body(choice.body)], choice.orelse
    while isinstance(part, cst.If):
        blocks.append(body(part.body))
        part = part.orelse
    return ([*blocks, body(part.body)], True) if part is not None else (blocks, False)


def _is_end(line: cst.CSTNode) -> bool:
    small = line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None
    return (isinstance(small, cst.Return) and small.value is not None) or isinstance(small, cst.Raise)


def _last_name(statements: Sequence[cst.CSTNode]) -> str:
    """The name that a function gives at its only end, or ""."""
    last = statements[-1]
    small = last.body[0] if isinstance(last, cst.SimpleStatementLine) and len(last.body) == 1 else None
    alone = not any(_returns(line) for line in statements[:-1])
    return small.value.value if alone and isinstance(small, cst.Return) and isinstance(small.value, cst.Name) else ""


def _assigned(lines: list[Any], target: cst.BaseAssignTargetExpression, origin: dict[cst.CSTNode, cst.CSTNode]) -> list[Any]:
    """A block whose ends give the target their values."""
    result: list[Any] = []
    for index, line in enumerate(lines):
        if isinstance(line, cst.If) and _returns(line):
            rest = lines[index + 1 :]
            return [*result, _with_rest(line, rest, target, origin)]
        small = line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(small, cst.Return) and small.value is not None:
            constructed = line.with_changes(body=[*line.body[:-1], cst.Assign([cst.AssignTarget(target)], small.value)])
            origin[constructed] = origin.get(line, line)
            return [*result, constructed]
        result.append(line)
    return result


def _with_rest(choice: cst.If, rest: list[Any], target: cst.BaseAssignTargetExpression, origin: dict[cst.CSTNode, cst.CSTNode]) -> cst.If:
    """A choice whose branches give the target a value, with what follows as its last branch."""
    block = choice.body.with_changes(body=_assigned(list(body(choice.body)), target, origin))
    part: Any = choice.orelse
    if isinstance(part, cst.If):
        other: Any = _with_rest(part, rest, target, origin)
    elif part is not None:
        other = part.with_changes(body=part.body.with_changes(body=_assigned(list(body(part.body)), target, origin)))
    else:
        other = cst.Else(cst.IndentedBlock(_assigned(rest, target, origin)))
    new = choice.with_changes(body=block, orelse=other)
    origin[new] = origin.get(choice, choice)
    return new


def _arguments(function: cst.FunctionDef, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """The values of a function's parameters in a call, where these may stand in several places."""
    names = [one.name.value for one in function.params.params]
    values: dict[str, cst.BaseExpression] = {one.name.value: one.default for one in function.params.params if one.default is not None}
    for index, argument in enumerate(call.args):
        name = argument.keyword.value if argument.keyword is not None else names[index] if index < len(names) else ""
        if argument.star or name not in names:
            return None
        values[name] = argument.value
    plain = all(isinstance(v, cst.BaseNumber | cst.SimpleString | cst.UnaryOperation) or chain_of(v) for v in values.values())
    return values if plain and set(names) == values.keys() else None


def _defines(line: cst.CSTNode, names: set[str]) -> bool:
    return isinstance(line, cst.FunctionDef) and line.name.value in names


def _is_docstring(line: cst.CSTNode) -> bool:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))


class _Put(cst.CSTTransformer):
    """Puts values in place of names, not of attributes and keywords."""

    def __init__(self, values: Mapping[str, cst.BaseExpression], origin: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._values, self._origin = values, origin

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note which new node stands for which old one."""
        result = super().on_leave(original_node, updated_node)
        if isinstance(result, cst.CSTNode) and original_node in self._origin:
            self._origin.setdefault(result, self._origin[original_node])
        return result

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """What stands for the name."""
        value = self._values.get(updated_node.value)
        return updated_node if value is None else value.deep_clone()

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        """The name of an attribute is no name."""
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """The name of an argument is no name."""
        return updated_node.with_changes(keyword=original_node.keyword)
