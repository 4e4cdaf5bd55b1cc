"""What a step hands to Python in its middle is computed before it: a compiled step has no numbers for Python.

target = r + model.v(s2)                          target = r + model.v(s2)
delta = target - model.v(s)                       target_values = r + model.v(s2)
delta = delta.detach().numpy()             →      delta = target_values - model.v(s)
advantage = discounted(delta)                     delta = delta.detach().numpy()
loss = advantage * (model.v(s) - target)          advantage = discounted(delta)
loss.backward()                                   loss = advantage * (model.v(s) - target)
                                                  loss.backward()
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import binds_alone, called, hands_over, lists_numbers, method_of
from migrate_agent.tools.programs.rewrite.names import FreeNames, Rename, again, bound, code, gives, imports_of, read, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass

TWICE = ("ropout", "BatchNorm", "InstanceNorm", "RReLU", "rrelu", "Transformer", "spectral_norm")
"""Parts of names of layers that give something else, or are something else, when they are called twice."""
DRAWS = ("rand", "normal", "bernoulli", "multinomial", "sample", "exponential")
"""Parts of names by which modules draw."""
PLAIN = frozenset({"torch", "numpy", "gym", "gymnasium", "scipy", "pandas", "matplotlib", "tqdm", "wandb", "tensorboardX", "PIL"})
"""Packages whose modules, if they have any, are named in the script."""


class HostValues(ScriptPass):
    """One pass over a script. `modules` are the names that were seen to hold modules."""

    def __init__(self, module: cst.Module, modules: frozenset[str]) -> None:
        super().__init__()
        self._modules, self._free = modules, FreeNames(text_of(module))
        self._calls_once = not _may_call_twice(module)

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.IndentedBlock:
        """Compute once more what the loss and Python both need."""
        lines: list[Any] = list(updated_node.body)
        backward = next((i for i, line in enumerate(lines) if method_of(line)[1] == "backward"), 0)
        handing = [line for i, line in enumerate(lines[:backward]) if hands_over(line) or lists_numbers(line, lines[i + 1 : backward + 1])]
        for line in handing:
            lines = self._before(lines, lines.index(line))
        return updated_node.with_changes(body=lines) if lines != list(updated_node.body) else updated_node

    def _before(self, lines: list[Any], place: int) -> list[Any]:
        chosen = _computed_by(lines, place)
        if self._calls_once or not any(self._modules & set(called(lines[i])) for i in chosen):
            return lines
        names: dict[str, str] = {}
        result: list[Any] = []
        # What it changes is its own from there on.
        given = set(gives(lines[place]))
        for number, line in enumerate(lines):
            if number not in chosen and number != place:
                result.append(line)
                continue
            new = self._renamed(line, names)
            needed = [name for name in bound(line) if number in chosen and name not in given]
            again = [name for name in needed if _is_read_later(lines, name, number, {*chosen, place})]
            if not again:
                result.append(new)
                continue
            names |= {name: self._free.pick(f"{name}_values") for name in again}
            result += [line, self._bound_anew(new, names).with_changes(leading_lines=())]
        return result

    def _renamed(self, line: Any, names: dict[str, str]) -> Any:
        """A statement that reads other names."""
        return again(self.origin, line).visit(_Reads(names, self.origin)) if names.keys() & set(read(line)) else line

    def _bound_anew(self, line: Any, names: dict[str, str]) -> Any:
        """A second statement like one that gives its value to another name."""
        new = again(self.origin, line)
        small = new.body[0]
        targets = [cst.AssignTarget(cst.Name(names[code(one.target)])) for one in small.targets]
        made = new.with_changes(body=[small.with_changes(targets=targets)])
        self.origin[made] = self.origin.get(line, line)
        return made


class _Reads(Rename):
    """Puts names in place of others where they are read."""

    def __init__(self, names: dict[str, str], origin: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__({})
        self._others, self._origin = names, origin

    def visit_AssignTarget_target(self, node: cst.AssignTarget) -> None:
        """A target is no reading."""

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        """Targets stay."""
        return original_node

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Note which new node stands for which old one."""
        result = super().on_leave(original_node, updated_node)
        if isinstance(result, cst.CSTNode) and original_node in self._origin:
            self._origin.setdefault(result, self._origin[original_node])
        return result

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """The other name."""
        return cst.Name(self._others.get(updated_node.value, updated_node.value))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """The name of an attribute is no name."""
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """The name of an argument is no name."""
        return updated_node.with_changes(keyword=original_node.keyword)


def _may_call_twice(module: cst.Module) -> bool:
    """Whether a script says of all its layers what they are, and a second call of each gives the same."""
    roots = {dotted.partition(".")[0] for dotted in imports_of(module).dotted.values()}
    # A class without a base, such as a replay memory, is no layer.
    classes = [code(node) for node in module.body if isinstance(node, cst.ClassDef) and {code(base) for base in node.bases} - {"object"}]
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(ast.parse(text_of(module))))
    seen = not relative and roots <= PLAIN | sys.stdlib_module_names and "torch.hub" not in text_of(module)
    return seen and not any(word in text_of(module) for word in TWICE) and not any(word in text for word in DRAWS for text in classes)


def _computed_by(lines: Sequence[Any], place: int) -> list[int]:
    """The plain assignments of names before a place that its statement is computed by."""
    needed: set[str] = set(read(lines[place]))
    chosen: list[int] = []
    for number in reversed(range(place)):
        line = lines[number]
        if not needed & set(bound(line)) or not binds_alone(line) or hands_over(line):
            needed -= set(bound(line)) if binds_alone(line) else set()
            continue
        if len(line.body) == 1 and all(isinstance(one.target, cst.Name) for one in line.body[0].targets):
            chosen.insert(0, number)
            needed = (needed - set(bound(line))) | set(read(line))
    return chosen


def _is_read_later(lines: Sequence[Any], name: str, place: int, but: set[int]) -> bool:
    """Whether a statement other than those reads a name, before it is bound anew."""
    for number in range(place + 1, len(lines)):
        if number not in but and name in read(lines[number]):
            return True
        if name in bound(lines[number]) and binds_alone(lines[number]):
            return False
    return False
