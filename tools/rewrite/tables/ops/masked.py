"""`torch.masked` (https://pytorch.org/docs/stable/masked.html) on plain tensors; `MaskedTensor` has
no rows.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.tables.registry import Op
from migrate_agent.tools.rewrite.tables.signatures import parse_signature

REDUCE = "input, dim=None, *, keepdim=False, dtype=None, mask=None"
SPREAD = "input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None"
ALONG = "input, dim, *, dtype=None, mask=None"

SIGNATURES = {
    **dict.fromkeys(("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "logsumexp"), REDUCE),
    **dict.fromkeys(("var", "std"), SPREAD),
    **dict.fromkeys(("cumsum", "cumprod", "softmax", "log_softmax", "softmin"), ALONG),
    "median": "input, dim=-1, *, keepdim=False, dtype=None, mask=None",
    "logaddexp": "input, other, *, dtype=None, input_mask=None, other_mask=None",
    "norm": "input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None",
    "normalize": "input, ord, dim, *, eps=1e-12, dtype=None, mask=None",
}


def _same(name: str, signature: str) -> str:
    """The template of a call to the vendored function: required arguments by position, others by name."""
    parsed = parse_signature(signature)
    names = (*parsed.names, *parsed.keyword_only)
    parts = [f"{{{name}}}" if name not in parsed.defaults else f"{name}={{{name}}}" for name in names]
    return f"vendored.masked_{name}({', '.join(parts)})"


ROWS = [
    Op(f"torch.masked.{name}", signature, _same(name, signature), aliases=(f"torch.masked._ops.{name}",))
    for name, signature in SIGNATURES.items()
]
