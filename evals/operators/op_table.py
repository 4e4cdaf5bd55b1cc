"""What the `ops` suite leaves out, and how some entries of PyTorch's `op_db` are spelled and compared. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

INTERNAL = "no public Python spelling: an internal behind other functions"
EXCLUDED: Mapping[str, str] = {
    **dict.fromkeys(("sparse.sampled_addmm", "sparse.mm", "to_sparse"), "sparse tensors"),
    **dict.fromkeys(
        (
            "jiterator_unary",
            "jiterator_binary",
            "jiterator_4inputs_with_extra_args",
            "jiterator_binary_return_by_ref",
            "jiterator_2inputs_2outputs",
        ),
        "no public Python spelling: CUDA source given as a string",
    ),
    **dict.fromkeys(
        (
            "slice",
            "native_layer_norm",
            "native_group_norm",
            "native_batch_norm",
            "native_dropout_backward",
            "max_pool2d_with_indices_backward",
            "grid_sampler_2d",
            "grid_sampler_3d",
        ),
        INTERNAL,
    ),
    "linalg.pinv.singular": "no public Python spelling: the entry is a product of its arguments inside the call",
}
"""Name of an entry (or of one of its variants) → why it is out of scope. Names with a leading underscore are, too."""

UNDEFINED: frozenset[str] = frozenset(
    {
        "empty",
        "empty_like",
        "new_empty",
        "new_empty_strided",
        "empty_strided",
        "empty_permuted",
        "rand_like",
        "randn",
        "randn_like",
        "randint",
    }
    | {"randint_like", "normal", "bernoulli", "multinomial", "log_normal", "exponential", "cauchy", "geometric", "uniform"}
    | {"nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.alpha_dropout"}
    | {"nn.functional.feature_alpha_dropout", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"}
)
"""Entries whose values are undefined or random: shapes and dtypes are compared. (The verifier judges distributions.)"""

RANDOM_ARGUMENTS: Mapping[str, str] = {
    "svd_lowrank": "M=",  # what is left of the argument has full rank, and the approximation of it is random
    "nn.functional.rrelu": "training=True",
    "nn.functional.scaled_dot_product_attention": "dropout_p=0.",
    "nn.functional.multi_head_attention_forward": ", 0.5, ",
}
"""Entry → text in a call that makes it random; such samples are compared by shape."""

TOLERANCES: Mapping[str, float] = {
    "nn.functional.hardsigmoid": 1e-7,  # torch multiplies the gradient by 1/6 in single precision
}

TIES: frozenset[str] = frozenset({"kthvalue", "mode", "topk", "sort", "argsort", "median", "nanmedian", "msort"})
"""Entries whose index among equal values torch leaves open: for integers and bools, indices are not compared."""

NO_GRADIENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("nn.functional.max_unpool1d", "nn.functional.max_unpool2d", "nn.functional.max_unpool3d"),
        "samples write several values to one place, and which survives is open (their `grad` variants do not)",
    ),
}


class Wrap(NamedTuple):
    """Statements before the call, and the result as an expression over `y`, what the call gave."""

    before: str = ""
    after: str = "y"


WRAPS: Mapping[str, Wrap] = {
    **dict.fromkeys(("linalg.eigvalsh",), Wrap("x0 = x0 + x0.mH")),
    "linalg.eigh": Wrap("x0 = x0 + x0.mH", "(y[0], y[1].abs())"),
    "linalg.pinv.hermitian": Wrap("x0 = x0 + x0.mH"),
    "linalg.eig": Wrap("", "(y[0], y[1].abs())"),
    **dict.fromkeys(("svd_lowrank", "pca_lowrank"), Wrap("", "((y[0] * y[1][..., None, :]) @ y[2].mT, y[1])")),
    "linalg.svd": Wrap("", "(y[0][..., : y[1].shape[-1]].abs(), y[1], y[2][..., : y[1].shape[-1], :].abs())"),
    "svd": Wrap("", "(y[0][..., : y[1].shape[-1]].abs(), y[1], y[2][..., : y[1].shape[-1]].abs())"),
}
"""Decompositions: the argument made Hermitian where the entry's own wrapper does so, and what is arbitrary taken away: phases of vectors, and the
vectors without a singular value."""


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The matrix of low rank that the entry makes of its two factors."""
    return (a @ b.mT).detach().requires_grad_(a.requires_grad)


ARGUMENTS: Mapping[str, Callable[[Sequence[Any]], list[Any]]] = {
    "nn.functional.embedding": lambda args: [args[1], args[0], *args[2:]],
    "nn.functional.embedding_bag": lambda args: [args[1], args[0], *args[2:]],
    "einsum": lambda args: [args[1], *args[0]],
    "svd_lowrank": lambda args: [_product(*args)],
    "pca_lowrank": lambda args: [_product(*args)],
    "where": lambda args: [args[1], args[0], args[2]],
    "polygamma": lambda args: [args[1], args[0]],
    "special.polygamma": lambda args: [args[1], args[0]],
    "meshgrid.variadic_tensors": lambda args: [*args[0], *args[1:]] if isinstance(args[0], (list, tuple)) else list(args),
}
"""Entries whose sample is ordered otherwise than the public function's arguments."""

NAMES: Mapping[str, str] = {"normal.in_place": "normal_"}
"""Entry (with its variant) → the public function or method that it stands for, where that is not its name."""

OPERATORS: Mapping[str, str] = {
    "__radd__": "+",
    "__rsub__": "-",
    "__rmul__": "*",
    "__rdiv__": "/",
    "__rmod__": "%",
    "__rpow__": "**",
    "__rand__": "&",
    "__ror__": "|",
    "__rxor__": "^",
    "__rmatmul__": "@",
    "add": "+",
    "sub": "-",
    "mul": "*",
    "true_divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "pow": "**",
    "matmul": "@",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_left_shift": "<<",
    "bitwise_right_shift": ">>",
}
"""Entries that have (or are) an operator of Python; the operand of a reflected one stands on the right."""
