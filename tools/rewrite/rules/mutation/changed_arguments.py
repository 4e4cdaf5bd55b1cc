"""Layers that change what they are called with (`nn.ReLU(inplace=True)`), as far as somebody reads it afterwards."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst
import libcst.matchers as m

from migrate_agent.tools.rewrite.analysis.aliases import Alias, read_after
from migrate_agent.tools.rewrite.analysis.facts import is_tensor
from migrate_agent.tools.rewrite.rules.context import Context
from migrate_agent.tools.rewrite.rules.mutation.handed_back import mutated
from migrate_agent.tools.rewrite.rules.mutation.inplace_heads import Heads
from migrate_agent.tools.rewrite.rules.mutation.writes import _Writes, is_inplace
from migrate_agent.tools.rewrite.rules.parameters.passed_variables import callees
from migrate_agent.tools.rewrite.tables.canonical_names import TORCH
from migrate_agent.tools.types import Span


class RebindChangedArguments(_Writes):
    """Assign what a call changed in place: `y = self.relu(x)` → `x = self.relu(x)` and `y = x`, if `x` is read later.

    The examples saw the call change `x` and give it back. The assignment stands before a statement that the
    call is a part of, where nothing has computed with the old `x` by then. Where the call gives back something else, as
    `x + self.block(x)` with a sequence that begins with `nn.ReLU(inplace=True)`, that is `x = jax.nn.relu(x)`, whose positive part it is
    itself; of any activation in place at the front, as in `torch.cat([x, self.block(x)], 1)`, what `run_after_first` gives. Declines (a hole)
    elsewhere.
    """

    CHECKS = ("leave_Call",)
    KEEP = ("def f(g, x):\n    y = g(x)\n    return x + y\n",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._before: dict[Span, cst.BaseSmallStatement] = {}

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | None:
        writes = [self._before[span] for small in original.body if (span := self.context.span(small)) in self._before]
        before = [small for write in writes for small in (write if isinstance(write, cst.FlattenSentinel) else [write])]
        return updated.with_changes(body=[*before, *updated.body]) if before else None

    def leave_Assign(self, original: cst.Assign, updated: cst.Assign) -> cst.BaseSmallStatement | None:
        call, targets = original.value, [target.target for target in original.targets]
        if (joined := self._with_result(original, updated)) is not None:
            return joined
        changed = self._returned_names(call) if isinstance(call, cst.Call) else []
        if (
            len(changed) != 1
            or len(targets) != 1
            or not isinstance(targets[0], cst.Name)
            or not self._is_read_afterwards(original, changed[0])
        ):
            return None
        name, target = changed[0], targets[0]
        write = self._with_aliases(name, cst.Assign([cst.AssignTarget(cst.Name(name.value))], updated.value))
        if target.value == name.value:
            return write if isinstance(write, cst.FlattenSentinel) else None
        also = cst.Assign([cst.AssignTarget(cst.Name(target.value))], cst.Name(name.value))
        before = list(write) if isinstance(write, cst.FlattenSentinel) else [write]
        return cst.FlattenSentinel([*before, also])  # type: ignore[return-value]

    def leave_Expr(self, original: cst.Expr, updated: cst.Expr) -> cst.BaseSmallStatement | None:
        changed = (
            [name for name, change in self._seen_changed(original.value) if change == "returned"]
            if isinstance(original.value, cst.Call)
            else []
        )
        if len(changed) != 1 or not self._is_read_afterwards(original, changed[0]):
            return None
        return self._with_aliases(changed[0], cst.Assign([cst.AssignTarget(cst.Name(changed[0].value))], updated.value))

    def leave_Call(self, original: cst.Call, updated: cst.BaseExpression) -> cst.BaseExpression | None:
        """Refuse what is read again and cannot be passed on."""
        receiver = self._written_receiver(original)
        if receiver is not None and self._is_hoisted(original, receiver):
            self._before[self.context.span(self._statement())] = cst.Assign([cst.AssignTarget(cst.Name(receiver.value))], updated)
            return cst.Name(receiver.value)
        changed, parent = self._seen_changed(original), self.context.parent()
        alone = isinstance(parent, cst.Expr) or (
            isinstance(parent, cst.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0].target, cst.Name)
        )
        for name, change in changed:
            statement = self._statement()
            if change == "returned" and alone and len(changed) == 1 and self._function_with_copies() is not None:
                continue
            if change == "returned" and len(changed) == 1 and self._replaces_itself(original, name):
                continue
            if self._is_read_afterwards(statement, name) or self._is_read_twice(name):
                may_stand_before = len(changed) == 1 and self._may_stand_before(original, statement, name)
                if change == "returned" and may_stand_before and not self._aliases(name):
                    write = cst.Assign([cst.AssignTarget(cst.Name(name.value))], updated)
                    self._before[self.context.span(statement)] = self._with_aliases(name, write)
                    return cst.Name(name.value)
                if may_stand_before and len(original.args) == 1 and (ahead := self._applied_ahead(original.func)):
                    write = cst.Assign([cst.AssignTarget(cst.Name(name.value))], self.context.build(ahead, x=cst.Name(name.value)))
                    self._before[self.context.span(statement)] = self._with_aliases(name, write)
                    return None
                if len(changed) == len(original.args) == 1 and self._begins_in_place(original, statement, name):
                    return self._run_after_first(original, statement, name, updated)
                text = cst.Module([]).code_for_node(original.func)
                self.context.hole(original, f"{text} changes {name.value} in place, and it is read otherwise as well", "alias-write")
        return None

    def _replaces_itself(self, call: cst.Call, name: cst.Name) -> bool:
        """Whether the result takes the place of what was changed, in one case of two: `x = self.act(x) if x is not None else None`."""
        choice, statement = self.context.parent(), self.context.parent(2)
        match choice, statement:
            case cst.IfExp(test=test), cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))], value=value):
                once = len(m.findall(call, m.Name(name.value))) == 1
                return value is choice and test is not call and target == name.value and once and not self._aliases(name)
        return False

    def _own_attribute(self, func: cst.BaseExpression) -> str:
        """The attribute of this class that is called, or ""."""
        is_own = isinstance(func, cst.Attribute) and self.context.is_self(func.value) and self.context.cls is not None
        return func.attr.value if is_own and isinstance(func, cst.Attribute) else ""

    def _applied_ahead(self, func: cst.BaseExpression) -> str:
        """The call that does ahead what a module of this class does in place to its argument, or ""."""
        attribute, model = self._own_attribute(func), self.context.cls
        return Heads(self.context).applied_ahead(model, attribute) if attribute and model is not None else ""

    def _begins_in_place(self, call: cst.Call, statement: cst.CSTNode, name: cst.Name) -> bool:
        """Whether a sequence of this class is called that changes what it is called with by its first layer alone."""
        attribute, model = self._own_attribute(call.func), self.context.cls
        if not attribute or model is None or self._aliases(name) or not self._may_stand_before(call, statement, name):
            return False
        return "rest" not in self.context.taken and Heads(self.context).begins_in_place(model, attribute)

    def _run_after_first(self, call: cst.Call, statement: cst.CSTNode, name: cst.Name, updated: cst.BaseExpression) -> cst.Name:
        """`x, rest = run_after_first(self.model, x)` before the statement, and the name of the result in the place of the call."""
        targets = cst.Tuple([cst.Element(cst.Name(name.value)), cst.Element(cst.Name("rest"))], lpar=[], rpar=[])
        func = cst.ensure_type(updated, cst.Call).func
        value = self.context.build("vendored.run_after_first({layers}, {x})", layers=func, x=cst.Name(name.value))
        self._before[self.context.span(statement)] = cst.Assign([cst.AssignTarget(targets)], value)
        return cst.Name("rest")

    def _with_result(self, original: cst.Assign, updated: cst.Assign) -> cst.Assign | None:
        """`x, y = run_after_first(self.model, x)`, where `y = self.model(x)` is the whole statement."""
        span = self.context.span(original)
        match self._before.get(span), updated:
            case (
                cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[changed, _]))], value=value),
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as result)], value=cst.Name(value="rest")),
            ):
                del self._before[span]
                return cst.Assign([cst.AssignTarget(cst.Tuple([changed, cst.Element(result)], lpar=[], rpar=[]))], value)
        return None

    def _aliases(self, name: cst.Name | cst.Attribute, besides: Collection[str] = ()) -> list[Alias]:
        fact = self.context.observed(name)
        # No other name held the memory while the examples ran, whatever the statements allow.
        return [] if fact is not None and fact.changed == "alone" else super()._aliases(name, {*besides, *self._read_in_statement(name)})

    def _returned_names(self, call: cst.Call) -> list[cst.Name]:
        """The names whose tensors a call changes in place and gives back."""
        receiver = self._written_receiver(call)
        if receiver is not None:
            return [receiver]
        return [name for name, change in self._seen_changed(call) if change == "returned"]

    def _written_receiver(self, call: cst.Call) -> cst.Name | None:
        """The name whose tensor an operation of torch changes in place: `x` of `x.mul_(2)` and `F.relu(x, inplace=True)`."""
        is_method = isinstance(call.func, cst.Attribute) and is_inplace(call.func.attr.value) and not self.context.dotted(call.func)
        receiver = call.func.value if is_method and isinstance(call.func, cst.Attribute) else self._inplace_argument(call)
        return receiver if isinstance(receiver, cst.Name) and is_tensor(self.context.observed(receiver)) else None

    def _seen_changed(self, call: cst.Call) -> list[tuple[cst.Name, str]]:
        """The names whose tensors a call was seen to change, and how; not what torch's own functions do, or functions that hand them back."""
        context = self.context
        names = [argument.value for argument in call.args if isinstance(argument.value, cst.Name) and not argument.star]
        changed: list[tuple[cst.Name, str]] = [
            (name, "returned" if fact.changed == "alone" else fact.changed)
            for name in names
            if (fact := context.observed(name)) is not None and fact.changed
        ]
        # What torch's own functions change the tables say, without examples.
        if (
            not changed
            or context.dotted(call.func).partition(".")[0] in TORCH
            or any(mutated(context, key) for key in callees(context, call))
        ):
            return []
        return changed

    def _is_read_afterwards(self, statement: cst.CSTNode, name: cst.Name) -> bool:
        """Whether the changed tensor is read after the statement, by this name or another."""
        function, end = self._function_with_copies(), self.context.span(statement).end_line
        if function is None:
            return True
        # Below a statement that binds the name anew, nobody sees the changed tensor by it.
        anew = isinstance(statement, cst.Assign) and any(_binds(target.target, name.value) for target in statement.targets)
        return bool(self._aliases(name)) or (not anew and read_after(function, name.value, end))


def _binds(target: cst.CSTNode, name: str) -> bool:
    if isinstance(target, cst.Name):
        return target.value == name
    return isinstance(target, (cst.Tuple, cst.List)) and any(_binds(element.value, name) for element in target.elements)
