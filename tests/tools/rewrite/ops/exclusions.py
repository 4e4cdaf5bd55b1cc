"""What the test over `op_db` leaves out, how entries are spelled, and why. Data only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

EXCLUDED: dict[str, str] = {}
"""Entries that are out of scope, with the reason."""

RANDOM = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}
"""Entries whose values are undefined or random: shapes and dtypes are compared."""

TOLERANCES: dict[str, float] = {}

TIES = {"kthvalue", "mode", "topk", "sort", "argsort", "median", "nanmedian"}
"""Entries whose index among equal values torch leaves open: indices are not compared for integers and bools."""

ARGUMENTS: dict[str, Callable[[Sequence[Any]], list[Any]]] = {
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
    (r"cov", r"int64", "torch makes float32 of integral weights whatever the default dtype is"),
)
"""(entries, samples, reason): regular expressions on the name, and on dtype, source and shapes of a sample."""
