"""Functions that do nothing but seed streams of random numbers and set switches of torch, such as `seed_everything(seed)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from migrate_agent.tools.rewrite.analysis.facts import span_of
from migrate_agent.tools.rewrite.analysis.repo import FileModel, FunctionNode, Repo, dotted_name
from migrate_agent.tools.scan.nodes import walk

SEEDS = "torch.manual_seed"
OF_DEVICES = frozenset({"torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.mps.manual_seed", "torch.xpu.manual_seed_all"})
OF_HOST = frozenset({"random.seed", "numpy.random.seed"})
SWITCHES = "torch.backends."
_CALLED_SWITCHES = frozenset({"torch.use_deterministic_algorithms", "torch.cuda.empty_cache"})
_OF_PROCESSES = "PYTHONHASHSEED"
"""A variable of the environment that Python reads when it starts: it does nothing to the process that sets it."""
_PRESENT = "torch.cuda.is_available"


@dataclass(frozen=True)
class SeedHelper:
    """A function that seeds torch's stream with the argument `parameter`, which is at `position`, or by `default` where a call gives none."""

    parameter: str
    position: int
    default: int | None
    dropped: frozenset[tuple[int, int]]
    """Line and column of each of its statements that has no counterpart in JAX."""


@lru_cache(maxsize=4)
def seed_helpers(repo: Repo) -> dict[tuple[str, str], SeedHelper]:
    """(file path, name) → the helper. Of functions that are nowhere but called, in statements of their own."""
    helpers = {
        (path, name): helper
        for path, model in repo.files.items()
        for name, function in model.functions.items()
        if "." not in name and function in model.tree.body and (helper := _helper(function, model)) is not None
    }
    return {key: helper for key, helper in helpers.items() if key not in _values(repo, helpers)} if helpers else {}


def _helper(function: FunctionNode, file: FileModel) -> SeedHelper | None:
    arguments = function.args
    if not isinstance(function, ast.FunctionDef) or function.decorator_list or arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        return None
    parameters = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    if not all(_is_seeding(statement, file, parameters) for statement in body):
        return None
    match [s.value for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and dotted_name(s.value.func, file) == SEEDS]:
        case [ast.Call(args=[ast.Name(id=name)], keywords=[])] if name in parameters:
            default = dict(zip(reversed(parameters), reversed(arguments.defaults), strict=False)).get(name)
            value = default.value if isinstance(default, ast.Constant) and type(default.value) is int else None
            gone = [node for node in walk(function) if isinstance(node, ast.stmt) and _is_dropped(node, file)]
            return SeedHelper(name, parameters.index(name), value, frozenset(span_of(node, file.lines)[:2] for node in gone))
    return None


def _is_dropped(statement: ast.stmt, file: FileModel) -> bool:
    """Whether a statement of a helper has no counterpart in JAX: all that it says to torch, and to processes that start later."""
    match statement:
        case ast.Expr(value=ast.Call(func=function)):
            name = dotted_name(function, file)
            return name == SEEDS or name in OF_DEVICES or name in _CALLED_SWITCHES
        case ast.Assign(targets=[ast.Attribute() as target], value=ast.Constant()):
            return dotted_name(target, file).startswith(SWITCHES)
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute() as table, slice=ast.Constant(value=key))]):
            return dotted_name(table, file) == "os.environ" and key == _OF_PROCESSES
    return False


def _is_seeding(statement: ast.stmt, file: FileModel, parameters: list[str]) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=function, args=arguments, keywords=[])):
            plain = all(isinstance(a, ast.Constant) or (isinstance(a, ast.Name) and a.id in parameters) for a in arguments)
            return plain and (_is_dropped(statement, file) or dotted_name(function, file) in OF_HOST)
        case ast.If(test=ast.Call(func=function, args=[]), body=body, orelse=[]):
            # What only a machine with such a device runs has no part in what is computed.
            return dotted_name(function, file) == _PRESENT and all(
                _is_dropped(inner, file) and not _seeds(inner, file) and _is_seeding(inner, file, parameters) for inner in body
            )
        case ast.Assign(value=value):
            calls = [node for node in walk(value) if isinstance(node, ast.Call)]
            return _is_dropped(statement, file) and all(isinstance(call.func, ast.Name) and call.func.id == "str" for call in calls)
        case ast.Pass():
            return True
    return False


def _seeds(statement: ast.stmt, file: FileModel) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and dotted_name(statement.value.func, file) == SEEDS


def _values(repo: Repo, helpers: dict[tuple[str, str], SeedHelper]) -> set[tuple[str, str]]:
    """The helpers that some file has for a value, or calls within an expression: who runs them then is not known."""
    names = {name for _, name in helpers}
    values: set[tuple[str, str]] = set()
    for file in repo.files.values():
        called = {id(node.value.func) for node in walk(file.tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)}
        values.update(key for node in _mentions(file, names) if id(node) not in called and (key := _key(repo, file, node)) in helpers)
    return values


def _mentions(file: FileModel, names: set[str]) -> Iterator[ast.Name | ast.Attribute]:
    for node in walk(file.tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Store):
            # A file may import a helper by another name.
            dotted = dotted_name(node, file)
            if dotted.rpartition(".")[2] in names:
                yield node


def _key(repo: Repo, file: FileModel, node: ast.Name | ast.Attribute) -> tuple[str, str]:
    definition = repo.resolve(dotted_name(node, file))
    return (definition[0].file.path, definition[1]) if definition else ("", "")
