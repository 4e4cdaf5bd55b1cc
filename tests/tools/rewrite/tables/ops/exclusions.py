"""What the test over `op_db` leaves out, how entries are spelled, and why. Data only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

EXCLUDED: dict[str, str] = {
    "linalg.pinv.singular": "the entry times a product of its arguments, not a public call",
    "linalg.pinv.hermitian": "the entry makes its argument symmetric first; at another one torch's gradient means nothing",
    **dict.fromkeys(("cauchy", "exponential", "geometric", "log_normal", "uniform"), "in place, and random: see test_random_fills"),
    "zero_": "in place: rewritten by the engine's rules, which use the same row",
    "normal.in_place": "the entry writes into its input: `normal_`",
    "nn.functional.triplet_margin_with_distance_loss": "the argument is a Python callable",
    "sparse.sampled_addmm": "sparse tensors",
    "sparse.mm": "sparse tensors",
    "to_sparse": "sparse tensors",
    "resize_": "changes the storage of a tensor that has elements",
    "resize_as_": "changes the storage of a tensor that has elements",
    "as_strided.partial_views": "strided storage of which the tensor is a part",
    "__getitem__": "an operator of Python: rewritten by the engine's rules",
    **dict.fromkeys(
        ("__radd__", "__rdiv__", "__rmul__", "__rand__", "__ror__", "__rxor__", "__rmatmul__", "__rmod__", "__rpow__", "__rsub__"),
        "an operator of Python: rewritten by the engine's rules",
    ),
    "slice": "no public spelling",
    **dict.fromkeys(
        (
            "_softmax_backward_data",
            "native_group_norm",
            "native_layer_norm",
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_batch_norm_with_update",
            "_upsample_bilinear2d_aa",
            "max_pool2d_with_indices_backward",
            "torch._scaled_mm_v2",
            "torch._scaled_mm",
            "torch.ops.aten._safe_softmax.default",
            "torch.ops.aten._flash_attention_forward",
            "torch.ops.aten._efficient_attention_forward",
            "_unsafe_masked_index",
            "_unsafe_masked_index_put_accumulate",
            "_chunk_cat",
            "native_dropout_backward",
            "grid_sampler_2d",
            "grid_sampler_3d",
            "_segment_reduce",
            "hash_tensor",
        ),
        "no public spelling, or an internal of other functions",
    ),
    **dict.fromkeys(
        (
            "jiterator_unary",
            "jiterator_binary",
            "jiterator_4inputs_with_extra_args",
            "jiterator_binary_return_by_ref",
            "jiterator_2inputs_2outputs",
        ),
        "CUDA source given as a string",
    ),
}
"""Entries that are out of scope, with the reason."""

REFUSED: dict[str, str] = {
    **dict.fromkeys(
        (
            "nonzero",
            "argwhere",
            "unique",
            "unique_consecutive",
            "masked_select",
            "bincount",
            "repeat_interleave",
            "tensor_split",
            "nn.functional.one_hot",
        ),
        "dynamic-shape",
    ),
    "nn.functional.batch_norm": "buffer-update",
    "nn.functional.instance_norm": "buffer-update",
    "chalf": "unsupported: JAX has no complex numbers of half precision",
}
"""Entries some of whose samples a row declines, with the code of the hole."""

MISSING: dict[str, str] = {
    **dict.fromkeys(("linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve"), "JAX has no LDL factorisation"),
}
"""Entries that have no row yet."""

WRONG: dict[str, str] = {
    "linalg.eig": "the phase of eigenvectors is arbitrary: the suite compares without it",
    **dict.fromkeys(("svd_lowrank", "pca_lowrank"), "randomised, with arbitrary signs: the suite compares the products"),
    "nn.functional.multi_head_attention_forward": "the entry's one sample drops out: the suite compares shapes",
    "nn.functional.linear_cross_entropy": "options that the harness cannot write: measured by the suite",
}
"""Entries whose row is known to differ, and how."""

RANDOM = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"} | {
    "rand_like", "randn", "randn_like", "randint", "randint_like", "normal", "bernoulli", "multinomial", "nn.functional.dropout",
    "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
    "log_normal", "exponential", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "cauchy", "geometric", "uniform",
}  # fmt: skip

"""Entries whose values are undefined or random: shapes and dtypes are compared."""

TOLERANCES: dict[str, float] = {
    "nn.functional.hardsigmoid": 1e-7,  # torch multiplies the gradient by 1/6 in single precision
}

NO_GRADIENT = {"nn.functional.max_unpool1d", "nn.functional.max_unpool2d", "nn.functional.max_unpool3d"}
"""Entries whose samples write several values to one place, so that which of them survives is open (their `grad` variants do not)."""

HERMITIAN = {"linalg.eigh", "linalg.eigvalsh"}
"""Entries whose argument stands for a Hermitian matrix: signs of eigenvectors and the other part of the gradient are arbitrary."""

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
    (r"nn.functional.rrelu", r"training=True", "random"),
    (r"nn.functional.scaled_dot_product_attention", r"dropout_p=0\.[1-9]", "random"),
    (r"nn.functional.(local_response_norm|avg_pool.d)", r"int64", "torch rounds averages of integers in its own way"),
    (r"nn.functional.(multi_margin_loss|multilabel_margin_loss)", r"\(\), \(\)", "scalars without a batch or class axis"),
    (r"nn.functional.(group_norm|unfold)", r"\(0, ", "an empty batch"),
    (r"linalg.slogdet|logdet", r"\(0, 0|\(\)\]", "a matrix without elements, or a scalar"),
    (r"cov", r"int64", "torch makes float32 of integral weights whatever the default dtype is"),
)
"""(entries, samples, reason): regular expressions on the name, and on dtype, source and shapes of a sample."""
