"""Shows of a module class that it may mix the rows of its argument: what a batch normalisation or `x.mean(0)` gives for a row depends on the others.

What is not known to mix rows is not shown to leave them alone (`row_functions.py` shows that).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, FileModel, Repo, dotted_name
from migrate_agent.tools.rewrite.tables.registry import public_name
from migrate_agent.tools.scan.nodes import walk

REDUCTIONS = frozenset(
    """sum mean prod max min amax amin std var any all norm argmax argmin median logsumexp softmax log_softmax cumsum cumprod sort argsort
    topk flip roll cat concat concatenate split chunk unbind cross_entropy mse_loss l1_loss nll_loss binary_cross_entropy
    binary_cross_entropy_with_logits smooth_l1_loss""".split()
)
"""Functions and methods that may mix the rows, unless an axis is named that is none of the rows'."""
MIXING = frozenset("BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LSTM GRU RNN MultiheadAttention".split())
"""Layers whose results for a row depend on the other rows."""
CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})


def may_mix_rows(repo: Repo, owner: ClassModel | None) -> Callable[[str], bool]:
    """Says of the class of a module whether its text shows that it mixes rows; `owner` is the class that holds the module."""
    return lambda dotted: _mixes(repo, public_name(dotted), owner, ())


def _mixes(repo: Repo, name: str, owner: ClassModel | None, above: Collection[str]) -> bool:
    if name.rpartition(".")[2] in MIXING:
        return True
    if name in CONTAINERS:
        return owner is not None and _constructs_mixing(repo, owner, above)
    model = repo.class_of(name)
    if model is None or model.id in above:
        return False
    reduces = any(
        isinstance(node, ast.Call) and reduces_rows(node, one.file)
        for one in repo.ancestors(model)
        for method in one.methods.values()
        if method.name != "__init__"
        for node in walk(method)
    )
    return reduces or _constructs_mixing(repo, model, (*above, model.id))


def _constructs_mixing(repo: Repo, model: ClassModel, above: Collection[str]) -> bool:
    """Whether a class makes a layer that mixes rows, at any depth."""
    for one in repo.ancestors(model):
        names = {dotted_name(node.func, one.file) for node in walk(one.node) if isinstance(node, ast.Call)} - {""}
        if any(_mixes(repo, public_name(repo.canonical(name, one.file.file)), None, above) for name in names):
            return True
    return False


def reduces_rows(node: ast.Call, file: FileModel) -> bool:
    """Whether a call of torch mixes what stands along the first axis: `x.mean(0)`, `torch.cat([x, y])`, `x.sum()`; an axis that is no number may be any."""
    dotted = dotted_name(node.func, file)
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in REDUCTIONS or (dotted and not dotted.startswith("torch.")):
        return False
    axes = [option.value for option in node.keywords if option.arg in ("dim", "axis", "dims")]
    before = bool(dotted) + (node.func.attr in ("split", "chunk", "topk"))
    axes = axes or node.args[before : before + 1]
    return not axes or any(isinstance(part, ast.Constant) and part.value == 0 and part.value is not False for part in walk(axes[0]))
