"""Finds the classes that override `nn.Module.train`."""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.rewrite.tables.helpers import has_modes
from migrate_agent.tools.rewrite.tables.registry import layers


def train_override(repo: Repo, model: ClassModel) -> ClassModel | None:
    """The topmost class among a class and its bases that overrides `train(mode)`; `None` where none
    does.

    Also `None` where one derives from a torch layer that has modes of its own.
    """
    line = list(repo.ancestors(model))
    if any(base in layers() and has_modes(layers()[base].vendored) for member in line for base in repo.bases(member)):
        return None
    overriding = [member for member in line if "train" in member.methods and takes_mode(member.methods["train"])]
    return overriding[-1] if overriding else None


def takes_mode(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method can be called with a mode as its only argument."""
    parameters = [*function.args.posonlyargs, *function.args.args][1:]
    required = len(parameters) - len(function.args.defaults)
    keywords = [name for name, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if default is None]
    return bool(parameters) and required <= 1 and not keywords
