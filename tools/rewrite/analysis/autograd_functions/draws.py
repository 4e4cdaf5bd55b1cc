"""Random numbers that an autograd function draws: its context brings them along, to `forward` and to `backward`."""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo

FUNCTION_BASES = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
PASSES = ("forward", "backward")


def passes_of_call(repo: Repo, dotted: str) -> set[tuple[str, str]]:
    """The functions (file path, qualified name) that a call of this dotted name runs, where it is `X.apply` of an autograd function of the repository."""
    owner, _, name = dotted.rpartition(".")
    model = repo.class_of(owner) if name == "apply" and owner else None
    if model is None or not is_autograd_function(repo, model):
        return set()
    owners = [next((one for one in repo.ancestors(model) if pass_name in one.methods), None) for pass_name in PASSES]
    return {(one.file.file.path, f"{one.qualname}.{pass_name}") for one, pass_name in zip(owners, PASSES, strict=True) if one}


def is_autograd_function(repo: Repo, model: ClassModel) -> bool:
    """Whether a class derives from torch's `autograd.Function`."""
    return any(base in FUNCTION_BASES for one in repo.ancestors(model) for base in repo.bases(one))


def context_of(repo: Repo, model: ClassModel | None, name: str) -> str:
    """The name of the context in a pass of an autograd function; "" in all other methods, and where `setup_context` fills the context."""
    if model is None or name not in PASSES or name not in model.methods or not is_autograd_function(repo, model):
        return ""
    if any("setup_context" in one.methods for one in repo.ancestors(model)):
        return ""
    node = model.methods[name]
    static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in node.decorator_list)
    return node.args.args[0].arg if static and node.args.args else ""
