"""Plain lists and dictionaries that a constructor fills under the name of the container of modules
that it then makes of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from keyword import iskeyword

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

FILLED = frozenset({"list", "dict", "OrderedDict"})


def interim_containers(repo: Repo, model: ClassModel, facts: Facts) -> Mapping[Span, str]:
    """Span of an attribute in a module's constructor → the local variable that it is in the
    rewrite.

    These are the reads and writes of `self.xs` between `self.xs = []` and `self.xs =
    nn.ModuleList(self.xs)`. Empty where a method reads the plain list in between.
    """
    return dict(_interim_attributes(model, facts)) if repo.is_module_class(model) else {}


def _interim_attributes(model: ClassModel, facts: Facts) -> Iterator[tuple[Span, str]]:
    constructor = model.methods.get("__init__")
    if constructor is None:
        return
    body = constructor.body
    for first, name in _filled_first(model, body):
        last = next((i for i, later in enumerate(body[first + 1 :], first + 1) if _stored(model, later)[0] == name), None)
        wrapped = _stored(model, body[last])[1] if last is not None else None
        fact = facts.observed.get(span_of(wrapped, model.file.lines)) if wrapped is not None else None
        if last is None or wrapped is None or fact is None or not all(kind.startswith("module:") for kind in fact.kinds):
            continue
        region: list[ast.AST] = [*body[first:last], wrapped]
        values = [value for part in body[first:last] for node in walk(part) for of, value in [_stored(model, node)] if of == name]
        if not all(value is not None and is_plain_container(value) for value in values):
            continue
        # The container must be built from the list itself, or the two are unrelated attributes.
        if not any(model.own.get(id(node)) == name for node in walk(wrapped)) or _read_by_methods(model, region, name):
            continue
        local = free_name(constructor, name)
        yield from ((span_of(node, model.file.lines), local) for part in region for node in walk(part) if model.own.get(id(node)) == name)


def _filled_first(model: ClassModel, body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Statement of a constructor → the attribute that it is the first to store, under a condition or not."""
    known: set[str] = set()
    for index, statement in enumerate(body):
        for name in dict.fromkeys(_stored(model, node)[0] for node in walk(statement)):
            if name and name not in known:
                known.add(name)
                yield index, name


def _stored(model: ClassModel, node: ast.AST) -> tuple[str, ast.expr | None]:
    match node:
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            return model.own.get(id(target), ""), value
    return "", None


def is_plain_container(value: ast.expr) -> bool:
    """Whether an expression makes a new plain list or dictionary."""
    if isinstance(value, ast.Call):
        return getattr(value.func, "attr", getattr(value.func, "id", "")) in FILLED
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return isinstance(value.left, ast.List) or isinstance(value.right, ast.List)  # `[None] * n`
    return isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)


def _read_by_methods(model: ClassModel, region: list[ast.AST], name: str) -> bool:
    """Whether the code before the container passes `self` on, or calls a method that reads the attribute."""
    nodes = [node for part in region for node in walk(part)]
    owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and id(node) in model.own}
    constructor = model.methods["__init__"]
    own = constructor.args.args[0].arg if constructor.args.args else ""
    # `self` passed on as a whole may be read by anyone.
    if any(isinstance(node, ast.Name) and node.id == own and id(node) not in owners for node in nodes):
        return True
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and id(node) in model.own} & set(model.methods)
    return any(model.own.get(id(node)) == name for method in used for node in walk(model.methods[method]))


def free_name(constructor: FunctionNode, name: str) -> str:
    """A name for a local variable in place of an attribute, which the constructor has not."""
    names = {n.id for n in walk(constructor) if isinstance(n, ast.Name)} | {a.arg for a in walk(constructor) if isinstance(a, ast.arg)}
    local = name.lstrip("_")
    local = local if local.isidentifier() and not iskeyword(local) else name
    return local if local not in names else f"{local}_parts"
