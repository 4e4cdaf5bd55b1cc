"""Finds the numbers that a module counts up when it is called.

A compiled function would bake their first value in as a constant; they have to be state.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.randomness import Randomness
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.scan.nodes import walk

NUMBERS = frozenset({"int", "float"})


def counters(repo: Repo, model: ClassModel, facts: Facts, randomness: Randomness) -> frozenset[str]:
    """Attributes that the constructor sets to a number and that a reachable method changes by `+=`
    and the like, or sets to what it computes of such ones (`self.rate = max(self.least, 1 / self.steps)`).

    An attribute that decides a branch is left out, since a branch needs a Python number. So is one
    that a base or a subclass uses, since then not all uses are visible here.
    """
    constructor = model.methods.get("__init__")
    # A subclass may use the number in any way, also in files that are rewritten later.
    if not repo.is_module_class(model) or constructor is None or repo.descendants.get(model.id):
        return frozenset()
    running = [f for name, f in model.methods.items() if (model.file.file.path, f"{model.qualname}.{name}") in randomness.live]
    # What grows while the module is made, such as the dilation of its next layers, is a plain number when calls read it.
    calling = [
        f for f in running if f is not constructor and (model.file.file.path, f"{model.qualname}.{f.name}") not in randomness.constructing
    ]
    counted = {
        model.own[id(node.target)] for f in calling for node in walk(f) if isinstance(node, ast.AugAssign) and id(node.target) in model.own
    }
    counted |= _computed_of(counted, model, calling)
    # By attribute name on any object: an alias of the module could stand before the dot.
    tested = {n.attr for f in running for test in walk(f) for n in _tests(test) if isinstance(n, ast.Attribute)}
    above = {n.attr for one in repo.ancestors(model) if one is not model for n in walk(one.node) if isinstance(n, ast.Attribute)}
    kinds = {name: repo.attribute(model, name) for name in counted - tested - above}
    started = {
        node.targets[0].attr
        for node in walk(constructor)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Attribute)
        and id(node.targets[0]) in model.own
    }
    return frozenset(
        name
        for name, fact in kinds.items()
        if name in started and fact is not None and set(fact.kinds) <= NUMBERS and _stays_number(model, facts, name)
    )


def _computed_of(counted: set[str], model: ClassModel, calling: Sequence[FunctionNode]) -> set[str]:
    """The attributes that calls set to what is computed of counted ones, in one expression."""
    stores = [
        (model.own[id(node.targets[0])], {model.own[id(n)] for n in walk(node.value) if id(n) in model.own})
        for function in calling
        for node in walk(function)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and id(node.targets[0]) in model.own
    ]
    computed: set[str] = set()
    for _ in stores:
        computed |= {name for name, reads in stores if reads & (counted | computed)}
    return computed


def _tests(node: ast.AST) -> list[ast.AST]:
    """The nodes of an expression that must stay a Python number: a condition, an index, the
    argument of `range`.
    """
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
            return list(walk(test))
        case ast.Subscript(slice=index):
            return list(walk(index))
        case ast.Call(func=ast.Name(id="range" | "int" | "float" | "str" | "print" | "len"), args=args):
            return [inner for argument in args for inner in walk(argument)]
        case ast.JoinedStr():
            return list(walk(node))
    return []


def _stays_number(model: ClassModel, facts: Facts, name: str) -> bool:
    for node in walk(model.node):
        if isinstance(node, ast.Attribute) and model.own.get(id(node)) == name:
            fact = facts.observed.get(span_of(node, model.file.lines))
            if fact is not None and not set(fact.kinds) <= NUMBERS:
                return False
    return True
