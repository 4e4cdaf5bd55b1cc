"""`torch.utils`: trees and recomputation (https://docs.pytorch.org/docs/stable/checkpoint.html);
layers that class methods make.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.functional import vendored_call
from migrate_agent.tools.rewrite.tables.registry import Call, Op

HANDED = ", rngs={rngs}"
PRETRAINED = "embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False"


def _checkpoint(call: Call) -> str:
    # The recomputation must draw the same numbers: the helper takes the keys as an argument.
    return f"vendored.checkpoint({{function}}, {{*args}}, {{*kwargs}}{HANDED if call.draws('function') else ''})"


ROWS = (
    Op(
        "torch.utils.checkpoint.checkpoint",
        "function, *args, use_reentrant=None, context_fn=None, determinism_check='default', debug=False, preserve_rng_state=True, **kwargs",
        _checkpoint,
        returns="",
        samples=("torch.utils.checkpoint.checkpoint(torch.sin, torch.ones(3), use_reentrant=False)",),
    ),
    Op(
        "torch.utils._pytree.tree_flatten",
        "tree, is_leaf=None",
        # `None` is a leaf of torch's trees and an empty subtree of JAX's.
        "jax.tree.flatten({tree}, is_leaf=lambda leaf: leaf is None)",
        returns="tuple",
    ),
    Op(
        "torch.nn.Embedding.from_pretrained",
        PRETRAINED,
        vendored_call("pretrained_embedding", PRETRAINED, "rngs={rngs}"),
        returns="",
        draws=True,
    ),
    Op(
        "torch.jit.isinstance",
        "obj, target_type",
        "isinstance({obj}, {target_type})",
        returns="bool",
        samples=("torch.jit.isinstance(torch.ones(2), torch.Tensor)",),
    ),
    Op(
        "torch.jit.annotate", "the_type, the_value", "{the_value}", returns="", samples=("torch.jit.annotate(torch.Tensor, torch.ones(2))",)
    ),
    Op("torch.utils._pytree.tree_unflatten", "leaves, treespec", "jax.tree.unflatten({treespec}, {leaves})", returns=""),
    Op("torch.utils._pytree.tree_map", "func, tree, *rests", "jax.tree.map({func}, {tree}, {*rests})", returns=""),
)
