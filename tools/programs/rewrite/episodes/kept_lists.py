"""Lists that a script keeps on its module become names of the script: a module holds weights, and what one episode left is none of it.

class Policy(nn.Module):                        class Policy(nn.Module):
    def __init__(self):                             def __init__(self):
        self.affine = nn.Linear(4, 2)                   self.affine = nn.Linear(4, 2)
        self.rewards = []                →
                                                policy = Policy()
policy = Policy()                               rewards = []
policy.rewards.append(reward)                   rewards.append(reward)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from migrate_agent.tools.programs.rewrite.core import body, call_of
from migrate_agent.tools.programs.rewrite.names import FreeNames, code, text_of
from migrate_agent.tools.programs.rewrite.spans import ScriptPass


class KeptLists(ScriptPass):
    """One pass over a script. `modules` are the names that were seen to hold modules."""

    def __init__(self, module: cst.Module, modules: frozenset[str]) -> None:
        super().__init__()
        self._names = _new_names(module, modules)
        """Module and attribute → the name that stands for it."""
        self._starts = {statement for (owner, name) in self._names for statement in _starts(module, owner, name)}

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """`policy.rewards` → `rewards`."""
        name = self._names.get((code(original_node.value), original_node.attr.value))
        return updated_node if name is None else cst.Name(name)

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine) -> Any:
        """The list begins empty where its module is constructed, and no longer inside of it."""
        if original_node in self._starts:
            return cst.RemoveFromParent()
        owner = _constructed(original_node)[0]
        names = [name for (module, _), name in self._names.items() if module == owner]
        return cst.FlattenSentinel([updated_node, *(cst.parse_statement(f"{name} = []") for name in names)]) if names else updated_node


def _new_names(module: cst.Module, modules: frozenset[str]) -> Mapping[tuple[str, str], str]:
    classes = {s.name.value: s for s in module.body if isinstance(s, cst.ClassDef)}
    made = [_constructed(s) for s in module.body if _constructed(s)[1] in classes]
    uses = _Uses()
    module.visit(uses)
    free, names = FreeNames(text_of(module)), {}
    for owner, class_name in made:
        if owner not in modules or uses.count(class_name) != 1 or sum(other == owner for other, _ in made) != 1:
            continue
        for name in _empty_lists(classes[class_name]):
            # Beside the statement of the constructor, only the script itself names it, and by the module's own name.
            if uses.attributes.get(name, set()) == {"self", owner} and uses.count(f"self.{name}") == 1:
                names[owner, name] = free.pick(name, f"{owner}_{name}")
    return names


class _Uses(cst.CSTVisitor):
    """How often names and attributes of `self` are read, and of what attributes are."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self.attributes: dict[str, set[str]] = {}

    def count(self, text: str) -> int:
        """How often a text stands for a value."""
        return self._texts.count(text)

    def visit_Call(self, node: cst.Call) -> None:
        """A class that is called."""
        self._texts += [node.func.value] if isinstance(node.func, cst.Name) else []

    def visit_Attribute(self, node: cst.Attribute) -> None:
        """An attribute, by what it is one of."""
        owner = code(node.value) if isinstance(node.value, cst.Name) else ""
        self.attributes.setdefault(node.attr.value, set()).add(owner)
        self._texts += [f"self.{node.attr.value}"] if owner == "self" else []


def _constructed(statement: cst.CSTNode) -> tuple[str, str]:
    """Name and class of `policy = Policy()`, also where it is moved to a device; two empty texts for anything else."""
    call, small = call_of(statement), getattr(statement, "body", [None])
    while call is not None and isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Call):
        call = call.func.value
    assigned = small[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if call is None or not isinstance(call.func, cst.Name) or not isinstance(assigned, cst.Assign) or len(assigned.targets) != 1:
        return "", ""
    target = assigned.targets[0].target
    return (target.value, call.func.value) if isinstance(target, cst.Name) else ("", "")


def _empty_lists(cls: cst.ClassDef) -> list[str]:
    """Attributes that the constructor gives an empty list."""
    constructor = next((s for s in body(cls.body) if isinstance(s, cst.FunctionDef) and s.name.value == "__init__"), None)
    lines = body(constructor.body) if constructor is not None else ()
    return [name for line in lines if (name := _emptied(line))]


def _emptied(statement: cst.CSTNode) -> str:
    """The attribute in `self.rewards = []`, or ""."""
    text = code(statement).strip() if isinstance(statement, cst.SimpleStatementLine) else ""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
    if not text or not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return ""
    target = small.targets[0].target
    empty = isinstance(small.value, cst.List) and not small.value.elements
    own = isinstance(target, cst.Attribute) and code(target.value) == "self"
    return target.attr.value if empty and own and isinstance(target, cst.Attribute) else ""


def _starts(module: cst.Module, owner: str, name: str) -> list[cst.CSTNode]:
    """The statement of the constructor that gives the list."""
    class_name = next(one for s in module.body for made, one in [_constructed(s)] if made == owner)
    cls = next(s for s in module.body if isinstance(s, cst.ClassDef) and s.name.value == class_name)
    constructor = next(s for s in body(cls.body) if isinstance(s, cst.FunctionDef) and s.name.value == "__init__")
    return [line for line in body(constructor.body) if _emptied(line) == name]
