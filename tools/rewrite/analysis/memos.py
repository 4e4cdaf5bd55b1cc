"""Attributes that only save recomputing: a mask or table that a call works out once and keeps for
the next call of the same size.

Under `jax.jit` nothing is gained by keeping it (the compiler folds it), and a module that grows an
attribute when it is first called is compiled twice. Where the kept value depends on sizes and
buffers alone, each call may as well work it out again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from migrate_agent.tools.rewrite.analysis.facts import Facts, span_of
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FunctionNode, Repo
from migrate_agent.tools.scan.nodes import walk
from migrate_agent.tools.types import Span

SIZE_ATTRIBUTES = frozenset({"shape", "device", "dtype", "ndim"})
SIZE_METHODS = frozenset({"size", "dim", "numel", "new_zeros", "new_ones", "new_full", "new_empty", "get_device"})
PLAIN = frozenset({"int", "float", "bool", "str", "none", "device", "dtype", "size"})
RANDOM = re.compile(r"rand|normal|uniform|bernoulli|dropout|multinomial|exponential|poisson|gumbel|shuffle|choice|sample|seed", re.I)
"""Parts of the names of functions that may draw: a number that was drawn once and kept is no memo."""


@dataclass(frozen=True)
class Memo:
    """An attribute that a method computes once and keeps for later calls, only for speed.

    `method`: the method that computes it. `start`: the statement of the constructor that sets it to
    `None`. `store`: the statement that stores the value. `test`: the `if` that decides whether to
    compute; `early` says that this `if` returns the stored value instead. `local`: the variable
    that replaces the attribute in the rewrite; `plain` says that the store already stores a
    variable of this name. `clears`: the statements of the method that set the attribute to `None`.
    `changes`: those after `store` that store what they make of the value. `keys`: the statements that keep for
    which size the value is, in attributes that the test alone reads.
    """

    attribute: str
    method: str
    start: Span
    store: Span
    test: Span
    early: bool
    local: str
    plain: bool
    clears: tuple[Span, ...] = ()
    changes: tuple[Span, ...] = ()
    keys: tuple[Span, ...] = ()


def memos(repo: Repo, model: ClassModel, facts: Facts) -> dict[str, Memo]:
    """Attribute → memo, for the attributes of a module class that certainly serve as memos only."""
    # A subclass could read the stored value, or set another one.
    if not repo.is_module_class(model) or repo.descendants.get(model.id) or "__init__" not in model.methods:
        return {}
    candidates = (_memo(repo, model, facts, name) for name in _none_attributes(model))
    return {memo.attribute: memo for memo in candidates if memo}


def _none_attributes(model: ClassModel) -> dict[str, None]:
    """Attributes that the constructor sets to `None`."""
    return {name: None for statement in walk(model.methods["__init__"]) for name, value in _stores(model, statement) if _is_none(value)}


def _stores(model: ClassModel, node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(attribute, value) pairs that a statement stores on the module, by assignment or as a
    non-persistent buffer.
    """
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=name) as target], value=value) if id(target) in model.own:
            yield name, value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="register_buffer") as target, args=[ast.Constant(value=str(name)), value, *_]) as call
        ) if id(target) in model.own and all(keyword.arg == "persistent" for keyword in call.keywords) and _transient(call):
            yield name, value


def _transient(call: ast.Call) -> bool:
    persistent = call.args[2] if len(call.args) > 2 else next((k.value for k in call.keywords if k.arg == "persistent"), None)
    return isinstance(persistent, ast.Constant) and persistent.value is False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _memo(repo: Repo, model: ClassModel, facts: Facts, name: str) -> Memo | None:
    lines = model.file.lines
    uses = [(method, node) for method, function in model.methods.items() for node in walk(function) if _uses(model, node, name)]
    others = {method for method, _ in uses} - {"__init__"}
    # A second method that reads the attribute would find it missing in the rewrite.
    if len(others) != 1 or any(_is_mentioned(one, name) for one in repo.ancestors(model) if one is not model):
        return None
    method = others.pop()
    function = model.methods[method]
    starts = [node for node in walk(model.methods["__init__"]) if any(key == name for key, _ in _stores(model, node))]
    pairs = [(node, value) for node in walk(function) if isinstance(node, ast.stmt) for key, value in _stores(model, node) if key == name]
    stores = [node for node, value in pairs if not _is_none(value)]
    clears = [node for node, value in pairs if _is_none(value)]
    updates = [node for node in walk(function) if isinstance(node, ast.AugAssign) and model.own.get(id(node.target)) == name]
    written = sum(isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) for _, node in uses)
    named = sum(isinstance(node, ast.Constant) for _, node in uses)
    # Every mention must be accounted for: one start, the stores with what changes them, and the clears.
    accounted = 1 + len(stores) + len(updates) + len(clears)
    if len(starts) != 1 or not stores or written + named != accounted or not isinstance(stores[0], (ast.Assign, ast.Expr)):
        return None
    stores.sort(key=lambda node: node.lineno)
    changes = [*stores[1:], *updates]
    loads = [node for user, node in uses if user == method and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)]
    around = _guard(repo, model, function, name, stores[0])
    if around is None:
        return None
    test, region, early = around
    if changes and (
        clears or early or named or not {id(node) for node in changes} <= {id(node) for inner in region for node in walk(inner)}
    ):
        return None
    inside_test = {id(node) for node in walk(test if early else test.test)}
    after = [node for node in loads if id(node) not in inside_test]
    decided = test if not clears else _settling_statement(function.body, test, clears)
    # A read above the decision sees the value of an earlier call: that is state, not a memo.
    if decided is None or any(node.lineno <= ((decided if clears else stores[0]).end_lineno or 0) for node in after):
        return None
    if not all(depends_on_sizes(repo, model, facts, function, node, region) for node in region):
        return None
    value = next(value for _, value in _stores(model, stores[0]))
    stored = [node.id for node in walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    plain = (
        not changes and isinstance(value, ast.Name) and stored.count(value.id) == sum(_binds(statement, value.id) for statement in region)
    )
    local = value.id if plain and isinstance(value, ast.Name) else name.lstrip("_")
    # The local variable must not shadow a name that the method has already.
    if not plain and local in {*stored, *(a.arg for a in walk(function) if isinstance(a, ast.arg))}:
        local += "_value"
    # A cleared attribute needs an assignment on each path, which these two forms have no place for.
    if clears and (plain or early):
        return None
    start, store, test_span, *gone = (span_of(node, lines) for node in (starts[0], stores[0], test, *clears))
    changed = tuple(span_of(node, lines) for node in changes)
    keys = tuple(span_of(node, lines) for node in _keys(repo, model, test, name))
    return Memo(name, method, start, store, test_span, early, local, plain, tuple(gone), changed, keys)


def _keys(repo: Repo, model: ClassModel, test: ast.If, name: str) -> Iterator[ast.stmt]:
    """The statements that keep what a value was computed for (`self.size = n`), in attributes that the test alone reads, and their first values."""
    read = {key: None for node in walk(test.test) if isinstance(node, ast.Attribute) and (key := model.own.get(id(node))) and key != name}
    asked = {id(node) for node in walk(test.test)}
    for key in read:
        uses = [node for function in model.methods.values() for node in walk(function) if _uses(model, node, key)]
        starts = [node for node in walk(model.methods["__init__"]) if any(stored == key for stored, _ in _stores(model, node))]
        kept = [node for node in test.body if any(stored == key for stored, _ in _stores(model, node))]
        elsewhere = [node for node in uses if id(node) not in asked]
        is_base = any(_is_mentioned(base, key) for base in repo.ancestors(model) if base is not model)
        if len(starts) == len(kept) == 1 and len(elsewhere) == 2 and not is_base:
            yield from (node for node in (*starts, *kept) if isinstance(node, ast.stmt))


def _settling_statement(block: list[ast.stmt], test: ast.If, clears: list[ast.stmt]) -> ast.stmt | None:
    """The statement of a block after which every path has computed the value (`test`) or cleared
    it; `None` if there is none.
    """
    for node in block:
        if node is test or node in clears:
            return node
        if isinstance(node, ast.If) and all(_settling_statement(arm, test, clears) for arm in (node.body, node.orelse)):
            return node
    return None


def _uses(model: ClassModel, node: ast.AST, name: str) -> bool:
    return model.own.get(id(node)) == name or (isinstance(node, ast.Constant) and node.value == name)


def _is_mentioned(model: ClassModel, name: str) -> bool:
    return any(_uses(model, node, name) for node in walk(model.node))


def _guard(repo: Repo, model: ClassModel, function: FunctionNode, name: str, store: ast.stmt) -> tuple[ast.If, list[ast.stmt], bool] | None:
    """The `if` that guards the computation, the statements that compute, and whether the `if`
    returns early.
    """
    for node in walk(function):
        if isinstance(node, ast.If) and store in node.body and not node.orelse and _is_missing(model, node.test, name):
            return node, node.body, False
    if store not in function.body:
        return None
    at = function.body.index(store)
    for index, node in enumerate(function.body[:at]):
        if (
            isinstance(node, ast.If)
            and not node.orelse
            and isinstance(node.body[-1], ast.Return)
            and _is_kept(repo, model, node.test, name)
        ):
            return node, function.body[index + 1 : at + 1], True
    return None


def _is_missing(model: ClassModel, test: ast.expr, name: str) -> bool:
    """Whether the test is `self.x is None`, alone or before an `or`."""
    first = test.values[0] if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else test
    return _is_none_test(model, first, name, ast.Is)


def _is_kept(repo: Repo, model: ClassModel, test: ast.expr, name: str) -> bool:
    """Whether the test is `self.x is not None`, alone or before an `and`, or a call such as
    `exists(self.x)`.
    """
    first = test.values[0] if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else test
    if _is_none_test(model, first, name, ast.IsNot):
        return True
    match first:
        case ast.Call(func=ast.Name(id=asked), args=[value], keywords=[]) if _uses(model, value, name):
            resolved = repo.resolve(model.file.bindings.get(asked) or model.file.own(asked))
            definition = resolved[0].functions.get(resolved[1]) if resolved else None
            return definition is not None and _returns_is_not_none(definition)
    return False


def _is_none_test(model: ClassModel, node: ast.expr, name: str, operator: type[ast.cmpop]) -> bool:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _uses(model, left, name) and isinstance(op, operator) and _is_none(right)
    return False


def _returns_is_not_none(function: FunctionNode) -> bool:
    """Whether a function is `def exists(x): return x is not None`."""
    match function.body:
        case [ast.Return(value=ast.Compare(left=ast.Name(id=asked), ops=[ast.IsNot()], comparators=[right]))]:
            return _is_none(right) and [argument.arg for argument in function.args.args] == [asked]
    return False


def _binds(statement: ast.stmt, name: str) -> int:
    return sum(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in walk(statement))


def depends_on_sizes(repo: Repo, model: ClassModel, facts: Facts, function: FunctionNode, node: ast.stmt, region: list[ast.stmt]) -> bool:
    """Whether a statement of the computation reads only sizes, numbers, buffers and the results of
    statements before it.
    """
    computed = {n.id for statement in region for n in walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    sizes: set[int] = set()
    owners = {id(child.value) for child in walk(node) if isinstance(child, ast.Attribute) and id(child) in model.own}
    for child in walk(node):
        match child:
            case ast.Attribute(value=value, attr=attribute) if attribute in SIZE_ATTRIBUTES | SIZE_METHODS:
                sizes.add(id(value))
            # A tensor may appear where only its size is read.
            case ast.Call(func=ast.Name(id="len"), args=[value]):
                sizes.add(id(value))
            case ast.Call(func=ast.Attribute(attr=method) as target) if id(target) in model.own and method in model.methods:
                if not _reads_no_parameters(repo, model, facts, model.methods[method]):
                    return False
    names = {a.arg for a in walk(function) if isinstance(a, ast.arg)} | {
        n.id for n in walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for child in walk(node):
        if (
            isinstance(child, ast.Name)
            and isinstance(child.ctx, ast.Load)
            and child.id in names - computed
            and id(child) not in sizes | owners
        ):
            fact = facts.observed.get(span_of(child, model.file.lines))
            if fact is None or not set(fact.kinds) <= PLAIN:
                return False
    return _reads_no_parameters(repo, model, facts, node)


def _reads_no_parameters(repo: Repo, model: ClassModel, facts: Facts, node: ast.AST) -> bool:
    """Whether the code reads only buffers, numbers and methods of the module, and draws no random numbers."""
    for child in walk(node):
        if not (isinstance(child, ast.Attribute) and id(child) in model.own):
            continue
        if not isinstance(child.ctx, ast.Load) or child.attr in model.methods or child.attr == "register_buffer":
            continue
        # What is also set where no example came is known by what was read.
        fact = repo.attribute(model, child.attr) or facts.observed.get(span_of(child, model.file.lines))
        fixed = fact is not None and not any(kind == "parameter" or kind.startswith("module:") for kind in fact.kinds)
        if not fixed and repo.buffer(model, child.attr) is None:
            return False
    # Drawing again in each call would give other numbers than the one that was kept.
    return not any(RANDOM.search(name) for child in walk(node) for name in _called(child))


def _called(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id
