"""Loops over phases of which one trains: what stands before the step becomes part of both branches.

for x, y in loaders[phase]:                            for x, y in loaders[phase]:
    optimizer.zero_grad()                                  if phase == "train":
    with torch.set_grad_enabled(phase == "train"):             optimizer.zero_grad()
        out = model(x)                                         out = model(x)
        loss = criterion(out, y)                 →             loss = criterion(out, y)
        if phase == "train":                                   loss.backward()
            loss.backward()                                    optimizer.step()
            optimizer.step()                               else:
    total += loss.item()                                       out = model(x)
                                                               loss = criterion(out, y)
                                                           total += loss.item()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body, method_of
from migrate_agent.tools.programs.rewrite.names import Imports, bound, read
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

ENABLED = ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled")


class Phases(ScriptPass):
    """One pass over a script. `is_module` says of an expression whether it was seen to be a module."""

    def __init__(self, imports: Imports, is_module: Callable[[cst.CSTNode], bool]) -> None:
        super().__init__()
        self._imports, self._is_module = imports, is_module
        self._choices: list[cst.CSTNode] = []

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        """`with torch.set_grad_enabled(…):` goes: gradients are taken where a step takes them."""
        calls = [item.item for item in updated_node.items]
        if not all(isinstance(call, cst.Call) and self._imports.of(call.func) in ENABLED for call in calls):
            return updated_node
        lines: list[Any] = list(updated_node.body.body)
        if lines and hasattr(lines[0], "leading_lines"):
            old = lines[0]
            lines[0] = old.with_changes(leading_lines=[*updated_node.leading_lines, *old.leading_lines])
            self.origin[lines[0]] = self.origin.get(old, old)
            self._choices += [lines[0]] if any(old is one for one in self._choices) else []
        return cst.FlattenSentinel(lines)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        """Let the step's branch hold what it is computed by."""
        lines: list[Any] = self._with_zeros(list(updated_node.body))
        updated_node = updated_node.with_changes(body=lines)
        index = next((i for i, line in enumerate(lines) if _trains(line)), None)
        first = self._first(lines[:index], lines[index]) if index is not None else None
        if index is None or first is None:
            return updated_node
        choice = lines[index]
        common = lines[first:index]
        other = [self._again(line) for line in common if method_of(line)[1] != "zero_grad"]
        other[:1] = [line.with_changes(leading_lines=()) for line in other[:1]]
        train = choice.body.with_changes(body=[*common, *choice.body.body])
        comments = getattr(train.body[0], "leading_lines", ())
        train = train.with_changes(body=[train.body[0].with_changes(leading_lines=()), *train.body[1:]])
        new = choice.with_changes(body=train, orelse=cst.Else(cst.IndentedBlock(other)), leading_lines=comments)
        self.origin[new] = self.origin.get(choice, choice)
        self._choices.append(new)
        return updated_node.with_changes(body=self._with_zeros([*lines[:first], new, *lines[index + 1 :]]))

    def _with_zeros(self, lines: list[Any]) -> list[Any]:
        """The lines with what sets gradients to zero before a step in the branch of the step."""
        index = next((i for i, line in enumerate(lines) if any(line is one for one in self._choices)), None)
        zeros = [line for line in lines[:index] if method_of(line)[1] == "zero_grad"] if index is not None else []
        if index is None or not zeros:
            return lines
        choice = lines[index]
        new = choice.with_changes(body=choice.body.with_changes(body=[*zeros, *choice.body.body]))
        self.origin[new] = self.origin.get(choice, choice)
        self._choices.append(new)
        return [*(line for line in lines[:index] if line not in zeros), new, *lines[index + 1 :]]

    def _first(self, before: Sequence[Any], choice: cst.If) -> int | None:
        """The first statement that calls a module for what the branch takes gradients of; `None` where none does."""
        needed, first = {name for line in body(choice.body) for name in read(line)}, None
        for number in reversed(range(len(before))):
            if set(bound(before[number])) & needed:
                needed |= set(read(before[number]))
                first = number if self._calls_module(before[number]) else first
        return first

    def _calls_module(self, statement: cst.CSTNode) -> bool:
        calls = [False]

        class Calls(cst.CSTVisitor):
            def visit_Call(visitor, node: cst.Call) -> None:
                calls[0] = calls[0] or self._is_module(self.origin.get(node.func, node.func))

        statement.visit(Calls())
        return calls[0]

    def _again(self, node: Any) -> Any:
        """A second statement like one; its nodes stand for the same old ones."""
        new = node.deep_clone()
        self._note(node, new)
        return new

    def _note(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
        self.origin[new] = self.origin.get(node, node)
        for old, one in zip(node.children, new.children, strict=True):
            self._note(old, one)


def _trains(line: cst.CSTNode) -> bool:
    """Whether a statement is a condition without another branch under which a loss goes backward and an optimizer steps."""
    if not isinstance(line, cst.If) or line.orelse is not None:
        return False
    methods = [method_of(statement)[1] for statement in body(line.body)]
    return "backward" in methods and "step" in methods
