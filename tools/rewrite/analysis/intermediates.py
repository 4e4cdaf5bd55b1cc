"""Finds the attributes that `forward` writes and no computation reads, such as attention weights
kept for inspection.
"""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.analysis.facts import Facts, is_tensor, span_of
from migrate_agent.tools.rewrite.analysis.randomness import Randomness
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.scan.nodes import walk

CREATING = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "tensor"))


def intermediates(repo: Repo, model: ClassModel, facts: Facts, randomness: Randomness) -> frozenset[str]:
    """Attributes of a module class that hold an intermediate tensor: set when the module is called,
    and read by no computation.
    """
    if not repo.is_module_class(model):
        return frozenset()
    family = [*repo.ancestors(model), *repo.descendants.get(model.id, ())]
    candidates = set()
    for method, function in model.methods.items():
        if _is_live(model, method, randomness):
            candidates |= {name for node in walk(function) if (name := _stored_tensor(node, facts, model)) and method != "__init__"}
    return frozenset(
        name
        for name in candidates
        if repo.buffer(model, name) is None
        and not any(_computes_with(one, name, randomness) for one in family)
        and all(_starts_empty(one, name, facts if one.file is model.file else None) for one in family)
        and not _read_elsewhere(repo, family, name)
    )


def _is_live(model: ClassModel, method: str, randomness: Randomness) -> bool:
    return (model.file.file.path, f"{model.qualname}.{method}") in randomness.live


def _stored_tensor(node: ast.AST, facts: Facts, model: ClassModel) -> str:
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=name) as target], value=value) if id(target) in model.own:
            return name if is_tensor(facts.observed.get(span_of(value, model.file.lines))) else ""
    return ""


def _computes_with(model: ClassModel, name: str, randomness: Randomness) -> bool:
    """Whether a reachable method reads the attribute before it sets it, or any code looks it up by
    a string.
    """
    for method, function in model.methods.items():
        nodes = list(walk(function))
        # `getattr(self, "attention")` would read an `nnx.Intermediate` where it expects an array.
        if any(isinstance(node, ast.Constant) and node.value == name for node in nodes):
            return True
        loads = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr == name and not isinstance(n.ctx, ast.Store)]
        stores = [
            s
            for s in function.body
            if isinstance(s, ast.Assign | ast.AnnAssign) and any(isinstance(t, ast.Attribute) and t.attr == name for t in _targets(s))
        ]
        # After its own store a method reads the value of this call, not one that was left behind.
        since = min((s.end_lineno or s.lineno for s in stores), default=None)
        if _is_live(model, method, randomness) and any(since is None or load.lineno <= since for load in loads):
            return True
    return False


def _starts_empty(model: ClassModel, name: str, facts: Facts | None) -> bool:
    """Whether the constructor sets the attribute to nothing but `None` or a new tensor such as
    `torch.zeros(1)`.
    """
    # An attribute that starts with a real value is state that the first call reads.
    constructor = model.methods.get("__init__")
    values = [
        node.value
        for node in (walk(constructor) if constructor else ())
        if isinstance(node, ast.Assign | ast.AnnAssign) and any(model.own.get(id(t)) == name for t in _targets(node))
    ]
    return all(value is None or _is_empty(value, model, facts) for value in values)


def _is_empty(value: ast.expr, model: ClassModel, facts: Facts | None) -> bool:
    if isinstance(value, ast.Constant):
        return value.value is None
    called = facts.dotted.get(span_of(value.func, model.file.lines), "") if facts and isinstance(value, ast.Call) else ""
    return called in CREATING


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _read_elsewhere(repo: Repo, family: list[ClassModel], name: str) -> bool:
    """Whether code outside of these classes reads an attribute of this name, on whatever object."""
    own = {id(node) for model in family for node in walk(model.node)}
    return any(
        isinstance(node, ast.Attribute) and node.attr == name and id(node) not in own
        for file in repo.files.values()
        if name in file.text
        for node in walk(file.tree)
    )
