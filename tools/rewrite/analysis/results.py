"""What calls of the repository's own functions give, by what their `return` statements were seen or inferred to be."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from migrate_agent.tools.rewrite.analysis.facts import NONE, UNKNOWN, Result, join
from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, FunctionNode, Repo

Key = tuple[str, str]
"""(file path, qualified name)."""


def joined(results: Iterable[Result]) -> Result:
    """What holds of all of several results; unknown where there is none."""
    every = list(results)
    fact = join([one.fact for one in every])
    lengths = {len(one.parts) for one in every}
    parts = zip(*(one.parts for one in every), strict=True) if len(lengths) == 1 else ()
    return Result(fact, tuple(join(part) for part in parts))


def result_of(node: FunctionNode, returned: Iterable[Result]) -> Result:
    """The result of a function, from those of its `return` statements in order."""
    # A generator gives no value of its `return`, and a decorator may give anything.
    if any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node)) or isinstance(node, ast.AsyncFunctionDef):
        return UNKNOWN
    if not all(_gives_the_same(one) for one in node.decorator_list):
        return UNKNOWN
    return joined([*returned, *([Result(NONE)] if _falls_through(node.body) else [])])


def _gives_the_same(decorator: ast.expr) -> bool:
    """Whether a decorator hands on what the function gives."""
    name = ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator).rpartition(".")[2]
    return name in ("no_grad", "inference_mode", "enable_grad", "staticmethod", "abstractmethod", "override")


def _falls_through(body: list[ast.stmt]) -> bool:
    match body[-1]:
        case ast.Return() | ast.Raise():
            return False
        case ast.If(body=first, orelse=second):
            return not second or _falls_through(first) or _falls_through(second)
        case ast.With(body=inner):
            return _falls_through(inner)
    return True


def methods_called(repo: Repo, owner: ClassModel, name: str) -> list[Key]:
    """The methods that `self.<name>(…)` may be in an instance of a class; none where it is not a method of the repository alone."""
    above = next((model for model in repo.ancestors(owner) if name in model.methods), None)
    below = [model for model in repo.descendants.get(owner.id, ()) if name in model.methods]
    return [key_of(model.file, f"{model.qualname}.{name}") for model in (above, *below) if model] if above else []


def key_of(file: FileModel, qualname: str) -> Key:
    """The key of a function in the table of results."""
    return file.file.path, qualname
