"""Which classes of a repository have a `train` of their own that stands in the place of `nn.Module.train`."""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.rewrite.tables.registry import layers


def own_train(repo: Repo, model: ClassModel) -> ClassModel | None:
    """The class farthest up, this one or one that it derives from, that has a `train` of a mode; None where none has.

    None, too, where it derives from a layer: those of NNX have modes of their own.
    """
    line = list(repo.ancestors(model))
    if any(base in layers() for each in line for base in repo.bases(each)):
        return None
    found = [each for each in line if "train" in each.methods and takes_mode(each.methods["train"])]
    return found[-1] if found else None


def takes_mode(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it can be called with a mode alone."""
    given = [*function.args.posonlyargs, *function.args.args][1:]
    required = len(given) - len(function.args.defaults)
    keywords = [name for name, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if default is None]
    return bool(given) and required <= 1 and not keywords
