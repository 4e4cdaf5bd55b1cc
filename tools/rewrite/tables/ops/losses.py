"""Losses (https://pytorch.org/docs/stable/nn.functional.html#loss-functions): the vendored
functions of the same names and arguments.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.ops.functional import F, vendored_call
from migrate_agent.tools.rewrite.tables.registry import Op

LEGACY = "size_average=None, reduce=None, reduction='mean'"

SIGNATURES = {
    "binary_cross_entropy": f"input, target, weight=None, {LEGACY}",
    "binary_cross_entropy_with_logits": f"input, target, weight=None, {LEGACY}, pos_weight=None",
    "cosine_embedding_loss": f"input1, input2, target, margin=0, {LEGACY}",
    "cross_entropy": "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0",
    "ctc_loss": "log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False",
    "gaussian_nll_loss": "input, target, var, full=False, eps=1e-06, reduction='mean'",
    "hinge_embedding_loss": f"input, target, margin=1.0, {LEGACY}",
    "huber_loss": "input, target, reduction='mean', delta=1.0, weight=None",
    "kl_div": f"input, target, {LEGACY}, log_target=False",
    "l1_loss": f"input, target, {LEGACY}, weight=None",
    "linear_cross_entropy": "input, linear_weight, target, *, linear_bias=None, weight=None, reduction='mean', ignore_index=None, "
    "label_smoothing=0.0",
    "margin_ranking_loss": f"input1, input2, target, margin=0, {LEGACY}",
    "mse_loss": f"input, target, {LEGACY}, weight=None",
    "multi_margin_loss": f"input, target, p=1, margin=1.0, weight=None, {LEGACY}",
    "multilabel_margin_loss": f"input, target, {LEGACY}",
    "multilabel_soft_margin_loss": f"input, target, weight=None, {LEGACY}",
    "nll_loss": "input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'",
    "poisson_nll_loss": "input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean'",
    "smooth_l1_loss": f"input, target, {LEGACY}, beta=1.0",
    "soft_margin_loss": f"input, target, {LEGACY}",
    "triplet_margin_loss": f"anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, {LEGACY}",
    "triplet_margin_with_distance_loss": "anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction='mean'",
}

# The vendored function has no such parameter, so that it is named for binding only.
UNUSED = {"linear_cross_entropy": ", options=None"}
"""Function → arguments that only say how torch splits the work into chunks."""

SAMPLES = {
    "nll_loss": (
        "torch.nn.functional.nll_loss(torch.ones(4), torch.tensor([3]))",
        "torch.nn.functional.nll_loss(torch.ones(4), torch.tensor(3))",
    ),
    "cross_entropy": ("torch.nn.functional.cross_entropy(torch.ones(4), torch.tensor([3]))",),
}
"""Calls that `op_db` does not have: one row of scores, with its label as a vector of one."""

ROWS = [
    Op(F + name, signature + UNUSED.get(name, ""), vendored_call(name, signature), samples=SAMPLES.get(name, ()))
    for name, signature in SIGNATURES.items()
]

OPTIONS = Op(
    "torch.nn.LinearCrossEntropyOptions",
    "allow_retain_graph=False, batch_chunk_size=None, chunking_method='auto', acc_policy='auto', acc_dtype=None",
    "None",
    returns="",
)
"""How torch's `LinearCrossEntropyLoss` splits the work, and which parts it keeps in memory.

The rewrite always computes in torch's default way.
"""
