"""Conditions on Python's numbers in the middle of a step are asked before it: inside a compiled step these numbers have no values.

for step in range(100):                        for step in range(100):
    loss = criterion(model(x), y)                  loss = criterion(model(x), y)
    if step > 2:                          →        chosen = step > 2
        loss = loss + penalty(model)               if chosen:
    loss.backward()                                    loss = loss + penalty(model)
                                                   loss.backward()

Whether it holds is then an argument of the step, which is compiled once for each answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst
from libcst import matchers as m

from migrate_agent.tools.programs.rewrite.core import method_of, tainted
from migrate_agent.tools.programs.rewrite.functions import called_again
from migrate_agent.tools.programs.rewrite.names import SELF, FreeNames, again, bound, gives, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

PLAIN = (
    cst.Name,
    cst.Attribute,
    cst.Comparison,
    cst.BooleanOperation,
    cst.UnaryOperation,
    cst.BinaryOperation,
    cst.Integer,
    cst.Float,
    cst.SimpleString,
)
"""What a condition may be made of, so that asking it earlier changes nothing."""
NUMBERS = frozenset({"int", "float"})


class LiftedTests(ScriptPass):
    """One pass over a script. `modules` are the names that were seen to hold modules, and `kinds`
    gives what an expression was seen to be."""

    def __init__(self, module: cst.Module, modules: frozenset[str], kinds: Callable[[cst.CSTNode], Sequence[str]]) -> None:
        super().__init__()
        self._module, self._modules, self._kinds, self._free = module, modules, kinds, FreeNames(text_of(module))
        self._around: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Note what stands around."""
        if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.For, cst.While)):
            self._around.append(node)
        return super().on_visit(node)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note what stands around no longer."""
        result = super().on_leave(original_node, updated_node)
        if self._around and self._around[-1] is original_node:
            self._around.pop()
        return result

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        """Ask before the statements of a step."""
        lines: list[Any] = list(updated_node.body)
        last = max((i for i, line in enumerate(lines) if method_of(line)[1] == "backward"), default=0)
        steps = tainted(lines[:last], self._modules)
        result, late = list[Any](), set[str]()
        for line in lines:
            questions, new = self._asked(line, late) if line in steps and isinstance(line, cst.If) else ([], line)
            late |= set(gives(line)) if line in steps else set()
            if questions:
                questions[0] = questions[0].with_changes(leading_lines=line.leading_lines)
                new = self._changed(new, leading_lines=())
            result += [*questions, new]
        return updated_node.with_changes(body=result) if len(result) > len(lines) else updated_node

    def _asked(self, line: cst.If, late: set[str], before: str = "") -> tuple[list[Any], cst.If]:
        """The statements that ask a condition and those of its `elif`s, and the choice with names for them. An `elif` is asked where what stands
        `before` it did not hold, since it may be no question at all otherwise: `if n == 0: … elif step % n == 0: …`.
        """
        if not self._is_lifted(line.test, late):
            return [], line
        name = cst.Name(self._free.pick("chosen"))
        self.origin[name] = self.origin.get(line.test, line.test)
        rest, none = line.orelse, f"{before}not {name.value} and "
        questions, other = self._asked(rest, late, none) if isinstance(rest, cst.If) else ([], rest)
        new = self._changed(line, orelse=other) if questions else line
        statement = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name.value))], self._question(line.test, before))])
        return [statement, *questions], self._changed(new, test=name)

    def _question(self, test: cst.BaseExpression, before: str) -> cst.BaseExpression:
        """A condition, asked where the text `before` holds."""
        own: cst.BaseExpression = again(self.origin, test)
        if not before:
            return own
        if isinstance(own, cst.BooleanOperation) and not own.lpar:
            own = self._changed(own, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        whole = cst.ensure_type(cst.parse_expression(f"{before}True"), cst.BooleanOperation)
        new: cst.BaseExpression = whole.with_changes(right=own)
        return new

    def _is_lifted(self, test: cst.BaseExpression, late: set[str]) -> bool:
        """Whether a condition is of Python's numbers alone that differ from step to step, and true or false."""
        parts = list(m.findall(test, m.MatchIfTrue(lambda node: isinstance(node, cst.BaseExpression))))
        leaves = [node for node in parts if isinstance(node, (cst.Name, cst.Attribute))]
        facts = [frozenset(self._kinds(self.origin.get(node, node))) for node in leaves]
        return (
            all(isinstance(node, PLAIN) for node in parts)
            and any(kinds and kinds <= NUMBERS for kinds in facts)
            and set(self._kinds(self.origin.get(test, test))) == {"bool"}
            and not late & set(read(test))
            and any(self._differs(name) for name in read(test))
        )

    def _differs(self, name: str) -> bool:
        """Whether a name may hold something else in the next step: a loop binds it, or a function is handed it that is called several times."""
        functions = [node for node in self._around if isinstance(node, cst.FunctionDef)]
        start = self._around.index(functions[-1]) if functions else -1
        loops = [node for node in self._around[start + 1 :] if isinstance(node, (cst.For, cst.While))]
        if any(name in bound(loop) for loop in loops):
            return True
        if not functions or (any(isinstance(node, cst.ClassDef) for node in self._around) and name.startswith(f"{SELF}.")):
            return bool(functions)
        parameters = {one.name.value for one in functions[-1].params.params}
        method = any(isinstance(node, cst.ClassDef) for node in self._around)
        return name in parameters and (method or called_again(self._module, functions[-1].name.value))

    def _changed(self, node: Any, **changes: Any) -> Any:
        new = node.with_changes(**changes)
        self.origin[new] = self.origin.get(node, node)
        return new
