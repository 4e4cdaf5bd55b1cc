"""Training steps whose parts are methods: a method that calls `backward()`, and what it is computed by, stands where it is called.

def forward(self):                                  def optimize(self):
    self.fake = self.netG(self.noise)                   self.fake = self.netG(self.noise)
                                                        self.optimizer_G.zero_grad()
def backward_G(self):                                   self.loss_G = criterion(self.netD(self.fake))
    self.loss_G = criterion(self.netD(self.fake))  →    self.loss_G.backward()
    self.loss_G.backward()                              self.optimizer_G.step()

def optimize(self):
    self.forward()
    self.optimizer_G.zero_grad()
    self.backward_G()
    self.optimizer_G.step()
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body, call_of, in_order, method_of
from migrate_agent.tools.programs.rewrite.names import SELF, bound, code, parse, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass


@dataclass(frozen=True, eq=False)
class Part:
    """A method that takes its object alone and gives nothing: its statements, and whether they call `backward()`."""

    function: cst.FunctionDef
    lines: Sequence[cst.BaseStatement]
    trains: bool

    @property
    def attributes(self) -> set[str]:
        """The attributes of its object that it gives values."""
        return {name for line in self.lines for name in bound(line) if name.startswith(f"{SELF}.")}

    @property
    def locals(self) -> set[str]:
        """Its own names."""
        return {name for line in self.lines for name in bound(line) if not name.startswith(f"{SELF}.")}


class PartedSteps(ScriptPass):
    """One pass over a script."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self._placed: dict[cst.CSTNode, Part] = {}
        # A class that is derived from it may have other methods of these names.
        bases = {name for node in module.body if isinstance(node, cst.ClassDef) for base in node.bases for name in read(base.value)}
        for statement in module.body:
            if isinstance(statement, cst.ClassDef) and statement.name.value not in bases:
                self._placed |= dict(_placed(statement, module))
        calls = Counter(part.function for part in self._placed.values())
        self._gone = {part.function for part in self._placed.values() if part.trains or _uses(module, part) == calls[part.function]}
        self.notes = [f"{part.function.name.value} stands where it was called" for part in dict.fromkeys(self._placed.values())]

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> Any:
        """A method that stands wherever it was called goes."""
        return cst.RemoveFromParent() if original_node in self._gone else updated_node

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """`self.backward_G()` → the statements of the method."""
        part = self._placed.get(original_node)
        if part is None:
            return updated_node
        lines = [self._again(line) for line in part.lines]
        first = lines[0].with_changes(leading_lines=updated_node.leading_lines)
        self.origin[first] = part.lines[0]
        return cst.FlattenSentinel([first, *lines[1:]])

    def _again(self, node: Any) -> Any:
        """A statement like one, whose nodes stand for the same old ones."""
        new = node.deep_clone()
        todo = [(node, new)]
        while todo:
            old, copy = todo.pop()
            self.origin[copy] = old
            todo += zip(old.children, copy.children, strict=True)
        return new


def _placed(owner: cst.ClassDef, module: cst.Module) -> Iterator[tuple[cst.CSTNode, Part]]:
    """The calls that a method's statements stand for, each with the method."""
    methods = [one for one in body(owner.body) if isinstance(one, cst.FunctionDef)]
    parts = {part.function.name.value: part for method in methods if (part := _part(method)) is not None}
    for method in methods:
        lines = list(in_order(method.body))
        calls = {line: parts[name] for line in lines if (name := _called(line)) in parts and parts[name].function is not method}
        own = {name for line in lines if line not in calls for name in (*bound(line), *read(line))}
        training = {line: p for line, p in calls.items() if p.trains and _is_called_once(module, p) and not p.locals & own}
        if not training or not any(method_of(line)[1] == "step" for line in lines):
            continue
        yield from training.items()
        needed = {name for part in training.values() for line in part.lines for name in read(line)}
        others = {line: p for line, p in calls.items() if not p.trains and p.attributes & needed and not p.locals & own}
        yield from others.items()


def _part(method: cst.FunctionDef) -> Part | None:
    """A method of the object alone that gives nothing, does one thing after the other and makes no step by itself."""
    parameters = method.params
    alone = len(parameters.params) == 1 and parameters.params[0].name.value == SELF and not isinstance(parameters.star_arg, cst.Param)
    lines = [line for line in body(method.body) if not _is_docstring(line)]
    tree = list(ast.walk(parse(method)))
    leaves = any(isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)) for node in tree)
    steps = any(method_of(line)[1] == "step" for line in in_order(method.body))
    if not alone or leaves or steps or not lines or method.decorators or parameters.kwonly_params or parameters.star_kwarg is not None:
        return None
    trains = any(method_of(line)[1] == "backward" for line in lines)
    return Part(method, lines, trains)  # type: ignore[arg-type]


def _called(statement: cst.CSTNode) -> str:
    """The method in the statement `self.method()`, or ""."""
    call = call_of(statement)
    alone = call is not None and not call.args and not bound(statement)
    function = call.func if call is not None and alone else None
    return function.attr.value if isinstance(function, cst.Attribute) and code(function.value) == SELF else ""


def _uses(module: cst.Module, part: Part) -> int:
    """How often a file names the method, apart from where it is defined."""
    name, nodes = part.function.name.value, list(ast.walk(ast.parse(text_of(module))))
    texts = sum(isinstance(node, ast.Constant) and node.value == name for node in nodes)
    return sum(isinstance(node, ast.Attribute) and node.attr == name for node in nodes) + texts


def _is_called_once(module: cst.Module, part: Part) -> bool:
    """Whether one place calls the method, and it is the only one of its name."""
    names = [node.name for node in ast.walk(ast.parse(text_of(module))) if isinstance(node, ast.FunctionDef)]
    return _uses(module, part) == 1 and names.count(part.function.name.value) == 1


def _is_docstring(line: cst.CSTNode) -> bool:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    return isinstance(small, cst.Expr) and isinstance(small.value, (cst.SimpleString, cst.ConcatenatedString))
