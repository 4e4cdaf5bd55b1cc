"""State space duality (Mamba-2) by chunks. The TPU kernel is ours: nobody maintains one."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, pad_axis, round_up, run_kernel, with_gradient
from migrate_agent.tools.vendored.activations import softplus
from migrate_agent.tools.vendored.numeric import promote_half


def ssd_scan(
    x: jax.Array,
    dt: jax.Array,
    A: jax.Array,
    B: jax.Array,
    C: jax.Array,
    D: jax.Array | None = None,
    z: jax.Array | None = None,
    dt_bias: jax.Array | None = None,
    initial: jax.Array | None = None,
    *,
    chunk: int = 128,
    dt_softplus: bool = False,
    return_last_state: bool = False,
    implementation: str = "xla",
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """hₜ = exp(Δₜ A) hₜ₋₁ + Δₜ xₜ Bₜᵀ, yₜ = hₜ Cₜ + D xₜ, times silu(z): x, z (B, T, H, P), dt (B, T, H), A (H,), B, C (B, T, G, N) → like x.

    D is (H,) or (H, P), dt_bias (H,), the states (B, H, P, N), at least float32. `chunk` is how many steps are computed together; it changes
    no result. Float32 and bfloat16 have a TPU kernel for `chunk` 128.
    https://arxiv.org/abs/2405.21060
    """
    wide, steps = promote_half(x), promote_half(dt)
    steps = steps if dt_bias is None else steps + promote_half(dt_bias)
    steps = softplus(steps) if dt_softplus else steps
    heads, groups = x.shape[2], B.shape[2]
    start = jnp.zeros((x.shape[0], heads, B.shape[3], x.shape[3]), wide.dtype) if initial is None else promote_half(initial).swapaxes(2, 3)
    chunk = min(chunk, round_up(max(x.shape[1], 1), 8))
    reason = float_reason(x) or ("" if chunk == 128 or chunk >= x.shape[1] else f"chunks of {chunk} fill no tile of 128")
    kernel, reference = partial(ssd_on_tpu, chunk=chunk), partial(ssd_reference, chunk=chunk)
    operands = [
        (wide * steps[..., None]).swapaxes(1, 2),
        (steps * promote_half(A)).swapaxes(1, 2),
        promote_half(B).swapaxes(1, 2).reshape(x.shape[0], groups, x.shape[1], B.shape[3]),
        promote_half(C).swapaxes(1, 2).reshape(x.shape[0], groups, x.shape[1], B.shape[3]),
    ]
    y, last = run_kernel("ssd_scan", implementation, reason, kernel, reference, *operands, start)
    y = y.swapaxes(1, 2)
    y = y if D is None else y + promote_half(D if D.ndim == 2 else D[:, None]) * wide
    y = (y if z is None else y * jax.nn.silu(promote_half(z))).astype(x.dtype)
    return (y, last.swapaxes(2, 3)) if return_last_state else y


def ssd_reference(x: jax.Array, decay: jax.Array, B: jax.Array, C: jax.Array, start: jax.Array, chunk: int) -> tuple[jax.Array, jax.Array]:
    """The bare sum in plain JAX: x (B, H, T, P), log decays (B, H, T), B, C (B, G, T, N), start (B, H, N, P) → (B, H, T, P), (B, H, N, P)."""
    length, each = x.shape[2], x.shape[1] // B.shape[1]
    long = round_up(length, chunk)
    x, B, C, decay = (pad_axis(a, 2, long).reshape(*a.shape[:2], long // chunk, chunk, *a.shape[3:]) for a in (x, B, C, decay))
    B, C = jnp.repeat(B, each, axis=1), jnp.repeat(C, each, axis=1)
    since = jnp.cumsum(decay, axis=-1)
    causal = jnp.tril(jnp.ones((chunk, chunk), bool))
    between = jnp.exp(jnp.where(causal, since[..., :, None] - since[..., None, :], -jnp.inf))
    y = (C @ B.swapaxes(-1, -2) * between) @ x
    added = (B * jnp.exp(since[..., -1:] - since)[..., None]).swapaxes(-1, -2) @ x

    def step(h: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        kept, added = now
        return kept[..., None, None] * h + added, h

    last, before = jax.lax.scan(step, start, (jnp.moveaxis(jnp.exp(since[..., -1]), 2, 0), jnp.moveaxis(added, 2, 0)))
    y += jnp.exp(since)[..., None] * (C @ jnp.moveaxis(before, 0, 2))
    return y.reshape(*y.shape[:2], long, y.shape[-1])[:, :, :length], last


def ssd_on_tpu(x: jax.Array, decay: jax.Array, B: jax.Array, C: jax.Array, start: jax.Array, chunk: int) -> tuple[jax.Array, jax.Array]:
    """The same by the TPU kernel."""
    return ssd_chunks(x, decay, B, C, start, chunk)


def ssd_forward(x: jax.Array, decay: jax.Array, B: jax.Array, C: jax.Array, start: jax.Array, chunk: int) -> tuple[jax.Array, jax.Array]:
    """Chunk after chunk of each head, the state between them in VMEM."""
    (batch, heads, length, size), (_, groups, _, states) = x.shape, B.shape
    long, each = round_up(length, chunk), heads // groups
    since = jnp.cumsum(pad_axis(decay, 2, long).reshape(batch * heads, long // chunk, chunk), axis=-1).reshape(batch * heads, long)

    def body(x_ref: Any, row_ref: Any, column_ref: Any, B_ref: Any, C_ref: Any, start_ref: Any, y_ref: Any, last_ref: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            last_ref[...] = start_ref[...]

        dot = partial(jax.lax.dot_general, precision=jax.lax.Precision.HIGHEST, preferred_element_type=jnp.float32)
        x, B, C, h, row, column = x_ref[0], B_ref[0], C_ref[0], last_ref[0], row_ref[0], column_ref[0]
        at, seen = (jax.lax.broadcasted_iota(jnp.int32, (chunk, chunk), axis) for axis in (0, 1))
        between = jnp.exp(jnp.where(at >= seen, column - row, -jnp.inf))
        end = column[chunk - 1 :, :]
        y = dot(dot(C, B, (((1,), (1,)), ((), ()))) * between, x, (((1,), (0,)), ((), ())))
        y_ref[0] = y + jnp.exp(column) * dot(C, h, (((1,), (0,)), ((), ())))
        last_ref[0] = jnp.exp(end) * h + dot(B * jnp.exp(end - column), x, (((0,), (0,)), ((), ())))

    def flat(a: jax.Array) -> jax.Array:
        return pad_axis(a, 2, long).reshape(-1, long, a.shape[-1])

    group = pl.BlockSpec((1, chunk, states), lambda g, i, c: (g, c, 0))
    rows = pl.BlockSpec((1, chunk, size), lambda g, i, c: (g * each + i, c, 0))
    state = pl.BlockSpec((1, states, size), lambda g, i, c: (g * each + i, 0, 0))
    y, last = pl.pallas_call(
        body,
        grid=(batch * groups, each, long // chunk),
        in_specs=[
            rows,
            pl.BlockSpec((1, 1, chunk), lambda g, i, c: (g * each + i, 0, c)),
            pl.BlockSpec((1, chunk, 1), lambda g, i, c: (g * each + i, c, 0)),
            group,
            group,
            state,
        ],
        out_specs=[rows, state],
        out_shape=[
            jax.ShapeDtypeStruct((batch * heads, long, size), jnp.float32),
            jax.ShapeDtypeStruct((batch * heads, states, size), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(flat(x), since[:, None, :], since[:, :, None], flat(B), flat(C), start.reshape(-1, states, size))
    return y[:, :length].reshape(x.shape), last.reshape(start.shape)


def ssd_backward(chunk: int, saved: tuple[jax.Array, ...], grads: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
    """The gradients by plain JAX: that of the chunks is made of matrix products already."""
    return jax.vjp(partial(ssd_reference, chunk=chunk), *saved)[1](grads)


ssd_chunks = with_gradient(
    ssd_forward,
    lambda x, decay, B, C, start, chunk: (ssd_forward(x, decay, B, C, start, chunk), (x, decay, B, C, start)),
    ssd_backward,
    static=(5,),
)


SHAPES = (
    Case((Array((1, 256, 2, 64)), Array((1, 256, 2), "positive"), Array((2,), "negative"), Array((1, 256, 1, 32)), Array((1, 256, 1, 32)))),
    Case(
        (
            Array((2, 37, 4, 5)),
            Array((2, 37, 4)),
            Array((4,), "negative"),
            Array((2, 37, 2, 6)),
            Array((2, 37, 2, 6)),
            Array((4, 5)),
            Array((2, 37, 4, 5)),
            Array((4,)),
            Array((2, 4, 5, 6)),
        ),
        {"dt_softplus": True, "return_last_state": True},
    ),
    Case(
        (
            Array((1, 150, 1, 3)),
            Array((1, 150, 1), "positive"),
            Array((1,), "negative"),
            Array((1, 150, 1, 4)),
            Array((1, 150, 1, 4)),
            Array((1,)),
        )
    ),
    Case((Array((1, 5, 2, 3)), Array((1, 5, 2), "positive"), Array((2,), "negative"), Array((1, 5, 1, 2)), Array((1, 5, 1, 2))), tiny=True),
)
KERNEL = Kernel(
    "ssd",
    ssd_scan,
    origin="ours: none is maintained",
    gradient="plain JAX by chunks",
    shapes=SHAPES,
    bench=(Case((Array((2, 4096, 80, 64)), Array((2, 4096, 80), "positive"), Array((80,), "negative"), *[Array((2, 4096, 1, 128))] * 2)),),
)
