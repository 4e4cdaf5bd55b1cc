"""Attributes of module classes whose names NNX itself reads or sets."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from migrate_agent.tools.rewrite.analysis.repo import ClassModel, Repo
from migrate_agent.tools.rewrite.analysis.self_references import family
from migrate_agent.tools.scan.nodes import walk

COMMON = frozenset({"deterministic", "use_running_average", "rngs"})
"""What `.train()` and `.eval()` of NNX set on each module that has it, and what the mirror's
constructors keep.
"""
DENSE = frozenset("dtype param_dtype promote_dtype precision preferred_element_type dot_general use_bias kernel tied".split())
CONV = frozenset(
    "mask kernel_shape strides conv_general_dilated input_dilation kernel_dilation feature_group_count in_features out_features".split()
)
NORM = frozenset(
    "dtype param_dtype promote_dtype scale mean var epsilon use_scale use_bias use_fast_variance axis axis_name axis_index_groups "
    "reduction_axes feature_axes feature_axis group_size".split()
)
LAYERS: Mapping[str, frozenset[str]] = {
    "Linear": DENSE,
    "Conv": DENSE | CONV,
    "Embedding": frozenset("embedding features dtype param_dtype promote_dtype tied frozen".split()),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), NORM | {"num_features"}),
    **dict.fromkeys(("GroupNorm", "BatchNorm", "InstanceNorm"), NORM),
}
"""Beginning of a torch layer's name → what its NNX counterpart holds under names that torch's layer
does not have.
"""


def taken_names(repo: Repo, model: ClassModel) -> frozenset[str]:
    """Attributes of a module class and its kin whose names NNX uses for something else."""
    if not repo.is_module_class(model):
        return frozenset()
    members = family(repo, model)
    bases = {base.removeprefix("torch.nn.") for one in members for base in repo.bases(one) if base.startswith("torch.nn.")}
    reserved = COMMON.union(*(names for start, names in LAYERS.items() if any(base.startswith(start) for base in bases)))
    stored = {name for one in members for name in (*stored_attributes(one), *one.buffers)}
    return frozenset(reserved & stored)


def stored_attributes(model: ClassModel) -> set[str]:
    """Attributes that a class assigns to itself."""
    nodes = (node for method in model.methods.values() for node in walk(method))
    return {
        model.own[id(node)]
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and id(node) in model.own
    }
