"""Products of vectors and matrices
(https://pytorch.org/docs/stable/torch.html#blas-and-lapack-operations).
"""

from __future__ import annotations

import ast

from migrate_agent.tools.rewrite.tables.ops.calls import is_bool, is_integral, is_kind, is_unspread, spelled, written_elements
from migrate_agent.tools.rewrite.tables.registry import Call, Op, Template


def _added(product: str) -> Template:
    """The template of `beta * input + alpha * product`. Factors of 1 are left out."""

    def to(call: Call) -> str:
        beta, alpha = (_factor(call, name) for name in ("beta", "alpha"))
        # A factor would turn booleans into integers in JAX; torch's result stays boolean.
        if is_bool(call, "input"):
            return _logical(call, product)
        # Torch ignores the input altogether at `beta=0`; `0 * inf` would bring a NaN into the sum.
        if call.given("beta") and call.literal("beta") == 0:
            return f"jnp.zeros_like({{input}}) + {alpha}({product})"
        return f"{beta}{{input}} + {alpha}({product})" if alpha else f"{beta}{{input}} + {product}"

    return to


def _factor(call: Call, name: str) -> str:
    """`factor * `, or "" for 1. A fractional factor of an integer tensor is truncated."""
    value = call.literal(name)
    if not call.given(name) or value == 1:
        return ""
    # Torch casts the factor to the integer dtype; a float factor would make the sum a float in JAX.
    return f"{int(value)} * " if isinstance(value, float) and is_integral(call, "input") else f"{{{name}}} * "


def _logical(call: Call, product: str) -> str:
    """The template for booleans: the sum is `or`, and a factor of 0 drops its term."""
    terms = [term for name, term in (("beta", "{input}"), ("alpha", f"({product})")) if call.literal(name) not in (0, False)]
    return " | ".join(terms) if terms else "jnp.zeros_like({input})"


def _einsum(call: Call) -> str:
    if call.count("operands") == 1 and is_unspread(call, "operands"):
        parts = written_elements(call, "operands")
        # `jnp.einsum` takes operands one by one only; torch also takes them as one list.
        if parts is not None and call.text("operands").lstrip().startswith(("(", "[")):
            return f"jnp.einsum({{equation}}, {', '.join(map(ast.unparse, parts))})"
        if not is_kind(call, "operands", "tensor", "parameter"):
            return "vendored.einsum({equation}, {*operands})"
    return "jnp.einsum({equation}, {*operands})"


def _tensordot(call: Call) -> str:
    """The template of `tensordot`: JAX's own function where no observed axis has size 1."""
    facts = [call.observed(name) for name in ("a", "b")]
    # Torch broadcasts a contracted axis of size 1; JAX raises.
    plain = all(fact and fact.shapes and all(1 not in shape for shape in fact.shapes) for fact in facts)
    return "jnp.tensordot({a}, {b}, axes={dims})" if plain else "vendored.tensordot({a}, {b}, {dims=2})"


def _cross(call: Call) -> str:
    return (
        # Without `dim` torch takes the first axis of size 3, JAX the last one.
        "jnp.cross({input}, {other}, axis={dim})"
        if call.given("dim") and call.literal("dim") is not None
        else "vendored.cross({input}, {other})"
    )


PRODUCTS = [
    *spelled("matmul", "input, other", "{input} @ {other}", "linalg.matmul"),
    *spelled("mm", "input, mat2", "{input} @ {mat2}"),
    Op("torch.spmm", "input, mat2", "{input} @ {mat2}", samples=("torch.spmm(torch.ones(2, 3), torch.ones(3, 2))",)),
    Op("torch.sparse.mm", "mat1, mat2", "{mat1} @ {mat2}", samples=("torch.sparse.mm(torch.ones(2, 3), torch.ones(3, 2))",)),
    *spelled("bmm", "input, mat2", "{input} @ {mat2}"),
    *spelled("mv", "input, vec", "{input} @ {vec}"),
    Op("torch.dot", "input, tensor", "jnp.dot({input}, {tensor})", method="dot"),
    *spelled("vdot", "input, other", "jnp.vdot({input}, {other})"),
    *spelled("outer", "input, vec2", "jnp.outer({input}, {vec2})", "ger"),
    *spelled("inner", "input, other", "jnp.inner({input}, {other})"),
    *spelled("kron", "input, other", "vendored.kron({input}, {other})"),
    *spelled("cross", "input, other, dim=None", _cross),
    Op("torch.linalg.cross", "input, other, *, dim=-1", "vendored.cross({input}, {other}, {dim=-1})"),
    Op("torch.linalg.vecdot", "x, y, *, dim=-1", "jnp.vecdot({x}, {y}, axis={dim})"),
    Op("torch.tensordot", "a, b, dims=2", _tensordot),
    Op("torch.einsum", "equation, *operands", _einsum),
    Op("torch.chain_matmul", "*matrices", "jnp.linalg.multi_dot({matrices})"),
    Op("torch.linalg.multi_dot", "tensors", "jnp.linalg.multi_dot({tensors})"),
    # The gradient of a square root at 0 is infinite; torch defines it as 0 for equal points.
    Op("torch.cdist", "x1, x2, p=2.0, compute_mode=None", "vendored.cdist({x1}, {x2}, {p})"),
    Op("torch.nn.functional.pdist", "input, p=2.0", "vendored.pdist({input}, {p})", aliases=("torch.pdist",)),
]

SUMS = [
    *spelled("addmm", "input, mat1, mat2, *, beta=1, alpha=1", _added("{mat1} @ {mat2}"), inplace=True),
    *spelled("addmv", "input, mat, vec, *, beta=1, alpha=1", _added("{mat} @ {vec}"), inplace=True),
    *spelled("addr", "input, vec1, vec2, *, beta=1, alpha=1", _added("jnp.outer({vec1}, {vec2})"), inplace=True),
    *spelled("baddbmm", "input, batch1, batch2, *, beta=1, alpha=1", _added("{batch1} @ {batch2}"), inplace=True),
    *spelled("addbmm", "input, batch1, batch2, *, beta=1, alpha=1", _added("jnp.einsum('bij,bjk->ik', {batch1}, {batch2})"), inplace=True),
]
