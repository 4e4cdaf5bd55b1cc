"""One optimizer over several modules becomes one for each of them: what it does to a parameter depends on nothing of the others. Lists of parameters
lose their names.

opt = Adam([*enc.parameters(), *dec.parameters()], lr=lr)      enc_opt = Adam(enc.parameters(), lr=lr)
…                                                              dec_opt = Adam(dec.parameters(), lr=lr)
opt.zero_grad()                                                …
loss.backward()                                         →      enc_opt.zero_grad()
opt.step()                                                     dec_opt.zero_grad()
                                                               loss.backward()
                                                               enc_opt.step()
                                                               dec_opt.step()
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import CLIPS, blocks, body, call_of, is_optimizer
from migrate_agent.tools.programs.rewrite.groups import chosen_parameters, first_rate, rate_of_group
from migrate_agent.tools.programs.rewrite.names import SELF, FreeNames, Imports, again, bound, chain_of, code, name_of, read, text_of
from migrate_agent.tools.programs.rewrite.passes.listed_parameters import parameter_parts
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

TOGETHER = frozenset({"torch.optim.LBFGS"})
"""Optimizers whose update of a parameter depends on others."""
SCHEDULERS = "torch.optim.lr_scheduler."
Lists = Mapping[str, tuple[cst.CSTNode, cst.BaseExpression]]
"""Name → the statement that gives it parameters of several modules, and these."""


@dataclass(frozen=True)
class Share:
    """The parameters of one module among those that an optimizer has: the expressions of its parts, each with the options that are its own."""

    module: str
    parts: tuple[tuple[cst.BaseExpression, tuple[tuple[str, cst.BaseExpression], ...]], ...]


@dataclass(frozen=True)
class Joint:
    """An optimizer over several modules: the statements that construct it, one of them in each run, with what each gives it of the modules, and a
    name for each module's own optimizer.
    """

    shares: Mapping[cst.CSTNode, tuple[Share, ...]]
    names: tuple[str, ...]


class JointOptimizers(ScriptPass):
    """One pass over a script."""

    def __init__(self, module: cst.Module, imports: Imports) -> None:
        super().__init__()
        self._imports = imports
        lists = _lists(module)
        self._joint = dict(_joint(module, imports, lists))
        self._schedulers = dict(pair for name in self._joint for pair in _schedulers(module, imports, name))
        uses = {name: list(_uses(module, name)) for name in [*self._joint, *self._schedulers]}
        refused = {name for name in self._joint if not all(map(self._understands, uses[name]))}
        refused |= {of for name, of in self._schedulers.items() if not all(_steps(use, name) for use in uses[name])}
        self._joint = {name: one for name, one in self._joint.items() if name not in refused}
        self._schedulers = {name: of for name, of in self._schedulers.items() if of not in refused}
        free = FreeNames(text_of(module))
        self._named = {name: _own_names(name, self._joint[of], free) for name, of in self._schedulers.items()}
        self._lists = {name: one for name, one in lists.items() if self._goes(module, name, one[1])}
        self._gone = {statement for statement, _ in self._lists.values()}

    def _understands(self, use: cst.CSTNode) -> bool:
        """Whether a use of an optimizer of several modules can be one of each module's own: what gives it zeros, its step, its rate, its schedulers."""
        call = call_of(use)
        function = call.func if call is not None else None
        if isinstance(function, cst.Attribute) and name_of(function.value) in self._joint and not bound(use):
            plain = function.attr.value == "zero_grad" or (function.attr.value == "step" and call is not None and not call.args)
            return plain or self._loads(use)
        if rate_of_group(use, self._joint) or any(use in one.shares for one in self._joint.values()):
            return True
        names = set(bound(use)) if isinstance(use, cst.SimpleStatementLine) else set()
        return bool(names & self._schedulers.keys()) or self._only_rates(use)

    def _loads(self, use: cst.CSTNode) -> bool:
        """Whether a statement is `optimizer.load_state_dict(state)` of a state that is found again by its name."""
        call = call_of(use)
        function = call.func if call is not None and not bound(use) else None
        if not isinstance(function, cst.Attribute) or name_of(function.value) not in self._joint or call is None or len(call.args) != 1:
            return False
        return function.attr.value == "load_state_dict" and bool(chain_of(call.args[0].value))

    def _only_rates(self, use: cst.CSTNode) -> bool:
        """Whether a statement only asks for the rate of the first group of parameters, or for the state."""
        reads = _Reads(self._joint)
        use.visit(reads)
        return isinstance(use, cst.SimpleStatementLine) and reads.others == 0

    def _goes(self, module: cst.Module, name: str, value: cst.BaseExpression) -> bool:
        """Whether a list of parameters is used for optimizers, and for clipping, alone."""
        single = len(_shares(value, {}) or ()) == 1
        uses = [use for use in _uses(module, name) if not _binds(use, name)]
        ours = [use for use in uses if any(use in one.shares for one in self._joint.values()) or (single and self._constructs(use, name))]
        return bool(ours) and all(use in ours or self._clips(use) for use in uses)

    def _constructs(self, statement: cst.CSTNode, name: str) -> bool:
        """Whether a statement constructs an optimizer of a list."""
        call = call_of(statement)
        return call is not None and is_optimizer(self._imports.of(call.func)) and bool(call.args) and name_of(call.args[0].value) == name

    def _clips(self, statement: cst.CSTNode) -> bool:
        call = call_of(statement)
        return call is not None and self._imports.of(call.func) in CLIPS

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """A construction, a step, what sets gradients to zero, and schedulers are those of each module."""
        if original_node in self._gone:
            return cst.RemoveFromParent()
        self.origin[updated_node] = original_node
        joint = next((one for one in self._joint.values() if original_node in one.shares), None)
        if joint is not None:
            rows = zip(joint.shares[original_node], joint.names, strict=True)
            return self._several([self._constructed(share, name, updated_node) for share, name in rows], updated_node)
        name = next((name for name in self._schedulers if name in (*bound(original_node), *read(original_node))), "")
        if name:
            joint, own = self._joint[self._schedulers[name]], self._named[name]
            return self._several(
                [self._with(updated_node, {name: one, self._schedulers[name]: opt}) for one, opt in zip(own, joint.names, strict=True)],
                updated_node,
            )
        function = call.func if (call := call_of(original_node)) is not None else None
        name = name_of(function.value) if isinstance(function, cst.Attribute) else ""
        if name not in self._joint:
            return updated_node
        lines = [self._with(updated_node, {name: one}) for one in self._joint[name].names]
        if self._loads(original_node):
            lines = [_of_state(line, _key(one)) for line, one in zip(lines, self._joint[name].names, strict=True)]
            self.origin |= dict.fromkeys(lines, original_node)
        return self._several(lines, updated_node)

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> Any:
        """`for group in optimizer.param_groups: group["lr"] = rate` for each."""
        name = rate_of_group(original_node, self._joint)
        if not name:
            return updated_node
        self.origin[updated_node] = original_node
        return self._several([self._with(updated_node, {name: one}) for one in self._joint[name].names], updated_node)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        """The rate of the first group is that of the first module's optimizer."""
        name = first_rate(original_node)
        self.origin[updated_node] = original_node
        return self._with(updated_node, {name: self._joint[name].names[0]}) if name in self._joint else updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """`optimizer.state_dict()` → the states of all of them, by their names."""
        joint = self._joint.get(_state_of(original_node, self._joint))
        if joint is None:
            return updated_node
        states = [(name, self._with(updated_node, {name_of(updated_node.func.value): name})) for name in joint.names]  # type: ignore[attr-defined]
        return cst.Dict([cst.DictElement(cst.SimpleString(f'"{_key(name)}"'), state) for name, state in states])

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """A list of parameters that has lost its name."""
        name = name_of(original_node.value)
        if name not in self._lists:
            return updated_node
        return updated_node.with_changes(value=again(self.origin, self._lists[name][1]))

    def _several(self, lines: Sequence[Any], first: Any) -> cst.FlattenSentinel[Any]:
        """Statements in the place of one; what is said above it is said above the first."""
        placed = [line.with_changes(leading_lines=() if number else first.leading_lines) for number, line in enumerate(lines)]
        self.origin |= {new: self.origin.get(old, first) for old, new in zip(lines, placed, strict=True)}
        return cst.FlattenSentinel(placed)

    def _constructed(self, share: Share, name: str, line: Any) -> Any:
        """The construction of one module's optimizer."""
        new = again(self.origin, line)
        call, (expression, options) = new.body[0].value, share.parts[0]
        if len(share.parts) == 1:
            named = {option for option, _ in options}
            kept = [a for a in call.args[1:] if a.keyword is None or a.keyword.value not in named]
            own = [_named_argument(option, again(self.origin, value)) for option, value in options]
            arguments = [cst.Arg(again(self.origin, expression)), *_plain(kept), *own]
        else:
            groups = [cst.Element(self._group(one, own)) for one, own in share.parts]
            arguments = [cst.Arg(cst.List(groups)), *_plain(call.args[1:])]
        own_name: Any = cst.parse_expression(name)
        target = cst.AssignTarget(own_name)
        return new.with_changes(body=[cst.Assign([target], call.with_changes(args=arguments))])

    def _group(self, parameters: cst.BaseExpression, options: Sequence[tuple[str, cst.BaseExpression]]) -> cst.Dict:
        rows = [("params", parameters), *options]
        return cst.Dict([cst.DictElement(cst.SimpleString(f'"{name}"'), again(self.origin, value)) for name, value in rows])

    def _with(self, node: Any, names: dict[str, str]) -> Any:
        """A statement of an optimizer as one of another."""
        return again(self.origin, node).visit(_Renamed(names, self.origin))


class _Renamed(cst.CSTTransformer):
    """Puts names, `self.optimizer` included, in place of others."""

    def __init__(self, names: dict[str, str], origin: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self._names, self._origin = names, origin

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """A name in place of another."""
        if isinstance(original_node, (cst.Name, cst.Attribute)) and name_of(original_node) in self._names:
            new = cst.parse_expression(self._names[name_of(original_node)])
            self._origin |= {new: self._origin[original_node]} if original_node in self._origin else {}
            return new
        result = super().on_leave(original_node, updated_node)
        if isinstance(result, cst.CSTNode) and original_node in self._origin:
            self._origin.setdefault(result, self._origin[original_node])
        return result


class _Reads(cst.CSTVisitor):
    """Counts how often optimizers are named for anything but the rate of their first group."""

    def __init__(self, names: Any) -> None:
        self._names, self.others = names, 0

    def visit_Subscript(self, node: cst.Subscript) -> bool:
        """`optimizer.param_groups[0]["lr"]` is a number."""
        return first_rate(node) not in self._names

    def visit_Call(self, node: cst.Call) -> bool:
        """`optimizer.state_dict()` is that of each."""
        return not _state_of(node, self._names)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        """`self.optimizer`."""
        self.others += name_of(node) in self._names
        return name_of(node) not in self._names

    def visit_Name(self, node: cst.Name) -> None:
        """`optimizer`."""
        self.others += node.value in self._names


def _state_of(node: cst.Call, names: Collection[str]) -> str:
    """The optimizer of those names in `optimizer.state_dict()`, or ""."""
    function = node.func
    if not isinstance(function, cst.Attribute) or function.attr.value != "state_dict" or node.args or name_of(function.value) not in names:
        return ""
    return name_of(function.value)


def _of_state(line: Any, key: str) -> Any:
    """`optimizer.load_state_dict(state)` → `optimizer.load_state_dict(state["key"])`."""
    call = line.body[0].value
    index = cst.SubscriptElement(cst.Index(cst.SimpleString(f'"{key}"')))
    argument = call.args[0].with_changes(value=cst.Subscript(call.args[0].value, [index]))
    return line.with_changes(body=[cst.Expr(call.with_changes(args=[argument]))])


def _key(name: str) -> str:
    return name.removeprefix(f"{SELF}.")


def _joint(module: cst.Module, imports: Imports, lists: Lists) -> Iterator[tuple[str, Joint]]:
    """Name → optimizer over several modules, the same ones wherever it is constructed."""
    free, rows = FreeNames(text_of(module)), list(_assignments(module))
    for name in dict.fromkeys(name for _, name, _ in rows):
        values = {statement: value for statement, other, value in rows if other == name}
        shares: dict[cst.CSTNode, tuple[Share, ...]] = {
            statement: _optimizer_shares(value, imports, lists) for statement, value in values.items()
        }
        modules = {tuple(share.module for share in one) for one in shares.values()}
        if len(modules) == 1 and len(ordered := next(iter(modules))) > 1:
            yield name, Joint(shares, tuple(_own_name(one, name, free) for one in ordered))


def _optimizer_shares(value: cst.BaseExpression, imports: Imports, lists: Lists) -> tuple[Share, ...]:
    """What an optimizer has of each module, where a value constructs one and says so."""
    dotted = imports.of(value.func) if isinstance(value, cst.Call) else ""
    if not isinstance(value, cst.Call) or not is_optimizer(dotted) or dotted in TOGETHER or not value.args:
        return ()
    return _shares(value.args[0].value, lists) or ()


def _own_name(module: str, name: str, free: FreeNames) -> str:
    """A name for the optimizer of one module: `encoder_optimizer`."""
    of = f"{SELF}." if name.startswith(f"{SELF}.") else ""
    return of + free.pick(f"{module.removeprefix(f'{SELF}.')}_{name.removeprefix(f'{SELF}.')}")


def _own_names(name: str, joint: Joint, free: FreeNames) -> tuple[str, ...]:
    (modules, *_) = joint.shares.values()
    return tuple(_own_name(share.module, name, free) for share in modules)


def _shares(node: cst.BaseExpression, lists: Lists) -> tuple[Share, ...] | None:
    """The modules whose parameters an expression lists, in order; `None` for an expression of another form."""
    parts = list(parameter_parts(node, {name: value for name, (_, value) in lists.items()}))
    rows: dict[str, Share] = {}
    for expression, options in parts:
        chosen = chosen_parameters(expression) if expression is not None else None
        if expression is None or chosen is None:
            return None
        share = rows.get(chosen[0], Share(chosen[0], ()))
        rows[chosen[0]] = Share(chosen[0], (*share.parts, (expression, options)))
    return tuple(rows.values())


def _lists(module: cst.Module) -> dict[str, tuple[cst.CSTNode, cst.BaseExpression]]:
    """Name → the statement that gives it parameters of modules, and these, of names that get a value once. An iterator is empty after its first use."""
    rows = list(_assignments(module))
    once = {name: (statement, value) for statement, name, value in rows if sum(other == name for _, other, _ in rows) == 1}
    result: dict[str, tuple[cst.CSTNode, cst.BaseExpression]] = {}
    for name, (statement, value) in once.items():
        if not isinstance(value, (cst.BinaryOperation, cst.List, cst.Call, cst.ListComp, cst.GeneratorExp)) or not _shares(value, {}):
            continue
        if not _is_iterator(value) or sum(not _binds(use, name) for use in _uses(module, name)) == 1:
            result[name] = statement, value
    return result


def _is_iterator(value: cst.BaseExpression) -> bool:
    """Whether an expression of parameters can be gone through once."""
    return isinstance(value, cst.GeneratorExp) or (isinstance(value, cst.Call) and code(value.func) not in ("list", "tuple"))


def _schedulers(module: cst.Module, imports: Imports, optimizer: str) -> Iterator[tuple[str, str]]:
    """The schedulers of an optimizer, each with its name."""
    for _, name, value in _assignments(module):
        dotted = imports.of(value.func) if isinstance(value, cst.Call) else ""
        if dotted.startswith(SCHEDULERS) and isinstance(value, cst.Call) and value.args and name_of(value.args[0].value) == optimizer:
            yield name, optimizer


def _steps(use: cst.CSTNode, scheduler: str) -> bool:
    """Whether a use of a scheduler is its construction or its step."""
    call = call_of(use)
    steps = call is not None and code(call.func) == f"{scheduler}.step" and not bound(use)
    return steps or _binds(use, scheduler)


def _binds(use: cst.CSTNode, name: str) -> bool:
    return isinstance(use, cst.SimpleStatementLine) and name in bound(use) and name not in read(use)


def _assignments(module: cst.Module) -> Iterator[tuple[cst.SimpleStatementLine, str, cst.BaseExpression]]:
    """The statements `name = value` of a file, of attributes of `self` too."""
    for block, _ in blocks(module):
        for statement in body(block):
            small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
            if isinstance(statement, cst.SimpleStatementLine) and isinstance(small, cst.Assign) and len(small.targets) == 1:
                if name := name_of(small.targets[0].target):
                    yield statement, name, small.value


def _uses(module: cst.Module, name: str) -> Iterator[cst.CSTNode]:
    """The statements that name something, and the headers of those that hold others. A loop that sets rates is one statement."""
    for block, _ in blocks(module):
        for statement in body(block):
            if isinstance(statement, cst.SimpleStatementLine):
                if name in (*bound(statement), *read(statement)):
                    yield statement
                continue
            if rate_of_group(statement, {name}):
                yield statement
                continue
            headers = [getattr(statement, part, None) for part in ("test", "iter", "target", "params", "subject")]
            nodes = [part for part in headers if isinstance(part, cst.BaseExpression)]
            nodes += [item.item for item in getattr(statement, "items", ())]
            yield from (node for node in nodes if name in (*read(node), *bound(node)))
            parameters = getattr(statement, "params", None)
            if isinstance(parameters, cst.Parameters) and name in [one.name.value for one in parameters.params]:
                yield statement


def _plain(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [argument.with_changes(comma=cst.MaybeSentinel.DEFAULT) for argument in arguments]


def _named_argument(name: str, value: cst.BaseExpression) -> cst.Arg:
    none = cst.SimpleWhitespace("")
    return cst.Arg(value, keyword=cst.Name(name), equal=cst.AssignEqual(none, none))
