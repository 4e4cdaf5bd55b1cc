"""Kinds of operators whose results depend on the dtype that they are computed in, by the names that both frameworks have for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

TORCH: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys("_softmax _log_softmax exp exp_ exp2 expm1 log log_ log2 log1p logsumexp softplus".split(), "exponentials"),
        **dict.fromkeys("sigmoid sigmoid_ silu silu_ log_sigmoid_forward".split(), "sigmoids"),
        **dict.fromkeys("tanh tanh_".split(), "tanh"),
        **dict.fromkeys("rsqrt rsqrt_ sqrt sqrt_ std linalg_vector_norm native_layer_norm native_group_norm".split(), "roots"),
    }
)
"""torch's operator → its kind."""
PRODUCTS = "products of what was rounded"
"""The kind of a product of which an operand was computed in float32 or wider and then rounded to a narrower dtype. In whichever dtype the product
is computed, it sees no more than that."""
TORCH_PRODUCTS = frozenset("mm addmm bmm baddbmm mv addmv dot convolution".split())
TORCH_LAYOUTS = frozenset(
    """view _unsafe_view reshape t transpose permute expand slice select unsqueeze squeeze clone split split_with_sizes unbind alias detach
    cat stack""".split()
)
"""torch's operators that move numbers without computing any."""
JAX: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys("exp exp2 expm1 log log1p".split(), "exponentials"),
        "logistic": "sigmoids",
        "tanh": "tanh",
        **dict.fromkeys("rsqrt sqrt".split(), "roots"),
    }
)
"""JAX's primitive → its kind."""
JAX_PRODUCTS = frozenset({"dot_general", "conv_general_dilated"})
JAX_LAYOUTS = frozenset(
    """reshape transpose broadcast_in_dim slice dynamic_slice squeeze expand_dims rev copy copy_p concatenate split gather
    optimization_barrier""".split()
)
"""JAX's primitives that move numbers without computing any."""


def wide_alone(seen: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    """The kinds that were computed in float32 or wider, and never in a narrower dtype. `seen`: kind, and whether it was narrow."""
    rows = set(seen)
    return tuple(sorted({kind for kind, narrow in rows if not narrow} - {kind for kind, narrow in rows if narrow}))
