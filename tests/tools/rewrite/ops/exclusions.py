"""What the test over `op_db` leaves out, how entries are spelled, and why. Data only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

EXCLUDED: dict[str, str] = {}
"""Entries that are out of scope, with the reason."""

RANDOM = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"} | {
    "rand_like", "randn", "randn_like", "randint", "randint_like", "normal", "bernoulli", "multinomial", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
    "log_normal", "exponential", "cauchy", "geometric", "uniform",
}  # fmt: skip

"""Entries whose values are undefined or random: shapes and dtypes are compared."""

TOLERANCES: dict[str, float] = {
    "nn.functional.hardsigmoid": 1e-7,  # torch multiplies the gradient by 1/6 in single precision
}

TIES = {"kthvalue", "mode", "topk", "sort", "argsort", "median", "nanmedian"}
"""Entries whose index among equal values torch leaves open: indices are not compared for integers and bools."""

ARGUMENTS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
    "nn.functional.embedding": lambda args: [args[1], args[0], *args[2:]],
    "nn.functional.embedding_bag": lambda args: [args[1], args[0], *args[2:]],
    "einsum": lambda args: [args[1], *args[0]],
    "where": lambda args: [args[1], args[0], args[2]],
    "polygamma": lambda args: [args[1], args[0]],
    "special.polygamma": lambda args: [args[1], args[0]],
}
"""Entries whose sample is ordered otherwise than the public function's arguments."""

SKIPPED: tuple[tuple[str, str, str], ...] = (
    (r"add(bmm|r|mm|mv)|baddbmm", r"int64.*(alpha|beta)=0\.", "torch cuts fractional factors of integral tensors to integers"),
    (r"addr|kron|masked_fill", r"bool", "arithmetic on bools, which NumPy does not have"),
    (r"tensordot", r"\(1, 1, 1\)", "torch broadcasts contracted axes of size 1"),
    (r"meshgrid", r"\(\)", "scalars as coordinates of a grid"),
    (r"nn.functional.rrelu", r"training=True", "random"),
    (r"nn.functional.scaled_dot_product_attention", r"dropout_p=0\.[1-9]", "random"),
    (r"nn.functional.(local_response_norm|avg_pool.d)", r"int64", "torch rounds averages of integers in its own way"),
    (r"nn.functional.(cosine_similarity|multi_margin_loss|multilabel_margin_loss)", r"\(\), \(\)", "scalars without a batch or class axis"),
    (r"nn.functional.(group_norm|unfold)", r"\(0, ", "an empty batch"),
    (r"cov", r"int64", "torch makes float32 of integral weights whatever the default dtype is"),
)
"""(entries, samples, reason): regular expressions on the name, and on dtype, source and shapes of a sample."""
