"""Products of vectors and matrices (https://pytorch.org/docs/stable/torch.html#blas-and-lapack-operations)."""

from __future__ import annotations

from migrate_agent.tools.rewrite.ops.calls import is_kind, spelled
from migrate_agent.tools.rewrite.tables import Call, Op, Template


def _added(product: str) -> Template:
    """`beta * input + alpha * product`, the factors only where they are given."""

    def to(call: Call) -> str:
        beta = "{beta} * " if call.given("beta") and call.literal("beta") != 1 else ""
        alpha = "{alpha} * " if call.given("alpha") and call.literal("alpha") != 1 else ""
        if call.given("beta") and call.literal("beta") == 0:
            return f"jnp.zeros_like({{input}}) + {alpha}({product})"
        return f"{beta}{{input}} + {alpha}({product})" if alpha else f"{beta}{{input}} + {product}"

    return to


def _einsum(call: Call) -> str:
    if call.count("operands") == 1 and not call.text("operands").startswith("*") and is_kind(call, "operands", "list", "tuple"):
        return "vendored.einsum({equation}, {*operands})"
    return "jnp.einsum({equation}, {*operands})"


def _cross(call: Call) -> str:
    return (
        "jnp.cross({input}, {other}, axis={dim})"
        if call.given("dim") and call.literal("dim") is not None
        else "vendored.cross({input}, {other})"
    )


PRODUCTS = [
    *spelled("matmul", "input, other", "{input} @ {other}", "linalg.matmul"),
    *spelled("mm", "input, mat2", "{input} @ {mat2}"),
    *spelled("bmm", "input, mat2", "{input} @ {mat2}"),
    *spelled("mv", "input, vec", "{input} @ {vec}"),
    Op("torch.dot", "input, tensor", "jnp.dot({input}, {tensor})", method="dot"),
    *spelled("vdot", "input, other", "jnp.vdot({input}, {other})"),
    *spelled("outer", "input, vec2", "jnp.outer({input}, {vec2})", "ger"),
    *spelled("inner", "input, other", "jnp.inner({input}, {other})"),
    *spelled("kron", "input, other", "jnp.kron({input}, {other})"),
    *spelled("cross", "input, other, dim=None", _cross),
    Op("torch.linalg.cross", "input, other, *, dim=-1", "vendored.cross({input}, {other}, {dim=-1})"),
    Op("torch.linalg.vecdot", "x, y, *, dim=-1", "jnp.vecdot({x}, {y}, axis={dim})"),
    Op("torch.tensordot", "a, b, dims=2", "jnp.tensordot({a}, {b}, axes={dims})"),
    Op("torch.einsum", "equation, *operands", _einsum),
    Op("torch.chain_matmul", "*matrices", "jnp.linalg.multi_dot({matrices})"),
    Op("torch.linalg.multi_dot", "tensors", "jnp.linalg.multi_dot({tensors})"),
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
