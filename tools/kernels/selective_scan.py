"""The selective scan of Mamba. The TPU kernel is ours: nobody maintains one."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, pad_axis, round_up, run_kernel, with_gradient
from migrate_agent.tools.vendored.activations import softplus
from migrate_agent.tools.vendored.numeric import promote_half


def selective_scan(
    u: jax.Array,
    delta: jax.Array,
    A: jax.Array,
    B: jax.Array,
    C: jax.Array,
    D: jax.Array | None = None,
    z: jax.Array | None = None,
    delta_bias: jax.Array | None = None,
    *,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    implementation: str = "xla",
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """hₜ = exp(δₜ A) hₜ₋₁ + δₜ uₜ Bₜ, yₜ = Cₜ hₜ + D uₜ, times silu(z): u, delta, z (B, D, T), A (D, N) → (B, D, T), in `u`'s dtype.

    B and C are (D, N), (B, N, T) or, by groups of channels, (B, G, N, T); δ is softplus(delta + delta_bias) with `delta_softplus`. The last
    state is (B, D, N), at least float32. Real A only. Float32 and bfloat16 have a TPU kernel for N up to 64.
    https://arxiv.org/abs/2312.00752
    """
    wide, steps = promote_half(u), promote_half(delta)
    steps = steps if delta_bias is None else steps + promote_half(delta_bias)[:, None]
    steps = softplus(steps) if delta_softplus else steps
    B, C = (by_groups(promote_half(x), u) for x in (B, C))
    groups = max(B.shape[1], C.shape[1])
    B, C = (jnp.broadcast_to(x, (x.shape[0], groups, *x.shape[2:])) for x in (B, C))

    def split(x: jax.Array) -> jax.Array:
        return x.reshape(x.shape[0], groups, x.shape[1] // groups, x.shape[-1]).swapaxes(2, 3)

    reason = float_reason(u, A) or ("" if A.shape[1] <= 64 else f"{A.shape[1]} states are more than 64")
    rates = promote_half(A).reshape(groups, -1, A.shape[1]).swapaxes(1, 2)
    y, last = run_kernel("selective_scan", implementation, reason, scan_on_tpu, scan_reference, split(wide), split(steps), rates, B, C)
    y = y.swapaxes(2, 3).reshape(u.shape)
    y = y if D is None else y + promote_half(D)[:, None] * wide
    y = (y if z is None else y * jax.nn.silu(promote_half(z))).astype(u.dtype)
    return (y, last.swapaxes(2, 3).reshape(u.shape[0], u.shape[1], A.shape[1])) if return_last_state else y


def by_groups(x: jax.Array, u: jax.Array) -> jax.Array:
    """B or C as (B, G, N, T), from that, (B, N, T), or (D, N), which is the same at all times and has a group for each channel."""
    if x.ndim == 2:
        return jnp.broadcast_to(x[None, :, :, None], (u.shape[0], *x.shape, u.shape[2]))
    return x[:, None] if x.ndim == 3 else x


def scan_reference(u: jax.Array, delta: jax.Array, A: jax.Array, B: jax.Array, C: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The bare recurrence in plain JAX: (B, G, T, E) twice, (G, N, E), (B, G, N, T) twice → (B, G, T, E), (B, G, N, E)."""

    def step(h: jax.Array, now: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        u, delta, B, C = now
        h = jnp.exp(delta[:, :, None] * A) * h + (delta * u)[:, :, None] * B[..., None]
        return h, (h * C[..., None]).sum(2)

    start = jnp.zeros((*u.shape[:2], *A.shape[1:]), u.dtype)
    last, y = jax.lax.scan(step, start, tuple(jnp.moveaxis(x, axis, 0) for x, axis in ((u, 2), (delta, 2), (B, 3), (C, 3))))
    return jnp.moveaxis(y, 0, 2), last


def scan_on_tpu(u: jax.Array, delta: jax.Array, A: jax.Array, B: jax.Array, C: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same by the TPU kernel. Time and channels are filled up to whole blocks: steps of δ = 0 change no state."""
    batch, groups, length, width = u.shape
    tall, wide = scan_blocks(length, width, A.shape[1])
    long, broad = round_up(length, tall), round_up(width, wide)

    def rows(x: jax.Array) -> jax.Array:
        return pad_axis(pad_axis(x.reshape(batch * groups, length, width), 2, broad), 1, long)

    def columns(x: jax.Array) -> jax.Array:
        return pad_axis(x.reshape(batch * groups, x.shape[2], length), 2, long)

    y, last = scan_chunks(rows(u), rows(delta), pad_axis(A, 2, broad), columns(B), columns(C), (tall, wide))
    return y[:, :length, :width].reshape(u.shape), last[:, :, :width].reshape(batch, groups, A.shape[1], width)


def scan_blocks(length: int, width: int, states: int) -> tuple[int, int]:
    """How many steps and channels make one block: the backward pass holds a block of states, at most 4 MiB."""
    return min(128, round_up(length, 8)), min(256 if states <= 16 else 128, round_up(width, 128))


def column_at(x: jax.Array, t: jax.Array) -> jax.Array:
    """Inside a kernel: column t of (N, T) as (N, 1). Lanes cannot be indexed by a number that is computed; a masked sum can."""
    return jnp.sum(jnp.where(jax.lax.broadcasted_iota(jnp.int32, x.shape, 1) == t, x, 0), axis=1, keepdims=True)


def scan_specs(A: jax.Array, blocks: tuple[int, int], chunks: int, backwards: bool) -> dict[str, pl.BlockSpec]:
    """Blocks of what goes in and out, over a grid of sequences, channels and chunks of time (the last first, where `backwards`)."""
    groups, states, _ = A.shape
    tall, wide = blocks

    def when(c: jax.Array) -> jax.Array:
        return chunks - 1 - c if backwards else c

    return {
        "rows": pl.BlockSpec((1, tall, wide), lambda i, d, c: (i, when(c), d)),
        "rates": pl.BlockSpec((1, states, wide), lambda i, d, c: (i % groups, 0, d)),
        "columns": pl.BlockSpec((1, states, tall), lambda i, d, c: (i, 0, when(c))),
        "parts": pl.BlockSpec((1, 1, states, tall), lambda i, d, c: (i, d, 0, when(c))),
        "state": pl.BlockSpec((1, states, wide), lambda i, d, c: (i, 0, d)),
        "starts": pl.BlockSpec((1, 1, states, wide), lambda i, d, c: (i, when(c), 0, d)),
    }


SCAN_ORDER = pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary"))


def scan_forward(
    u: jax.Array, delta: jax.Array, A: jax.Array, B: jax.Array, C: jax.Array, blocks: tuple[int, int]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """float32 (S, T, E) twice, (G, N, E), (S, N, T) twice → y (S, T, E), last state (S, N, E), states before each chunk (S, T / tall, N, E)."""
    (sequences, length, width), (_, states, _), (tall, wide) = u.shape, A.shape, blocks
    chunks = length // tall

    def body(
        u_ref: Any, delta_ref: Any, A_ref: Any, B_ref: Any, C_ref: Any, y_ref: Any, last_ref: Any, starts_ref: Any, h_ref: Any
    ) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            h_ref[...] = jnp.zeros_like(h_ref)

        starts_ref[0, 0] = h_ref[...]
        A, B, C = A_ref[0], B_ref[0], C_ref[0]

        def step(t: jax.Array, h: jax.Array) -> jax.Array:
            delta, u = delta_ref[0, pl.ds(t, 1), :], u_ref[0, pl.ds(t, 1), :]
            h = jnp.exp(delta * A) * h + (delta * u) * column_at(B, t)
            y_ref[0, pl.ds(t, 1), :] = jnp.sum(h * column_at(C, t), axis=0, keepdims=True)
            return h

        h_ref[...] = jax.lax.fori_loop(0, tall, step, h_ref[...])
        last_ref[0] = h_ref[...]

    spec = scan_specs(A, blocks, chunks, backwards=False)
    y, last, starts = pl.pallas_call(
        body,
        grid=(sequences, width // wide, chunks),
        in_specs=[spec[name] for name in ("rows", "rows", "rates", "columns", "columns")],
        out_specs=[spec[name] for name in ("rows", "state", "starts")],
        out_shape=[
            jax.ShapeDtypeStruct(u.shape, jnp.float32),
            jax.ShapeDtypeStruct((sequences, states, width), jnp.float32),
            jax.ShapeDtypeStruct((sequences, chunks, states, width), jnp.float32),
        ],
        scratch_shapes=[pltpu.VMEM((states, wide), jnp.float32)],
        compiler_params=SCAN_ORDER,
    )(u, delta, A, B, C)
    return y, last, starts


def scan_backward(blocks: tuple[int, int], saved: tuple[jax.Array, ...], grads: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
    """The gradients of all five, from the last chunk to the first; the states inside a chunk are computed again."""
    u, delta, A, B, C, starts = saved
    (sequences, length, width), (groups, states, _), (tall, wide) = u.shape, A.shape, blocks
    chunks, parts = length // tall, width // wide

    def body(*refs: Any) -> None:
        u_ref, delta_ref, A_ref, B_ref, C_ref, starts_ref, dy_ref, dlast_ref, du_ref, ddelta_ref, dA_ref, dB_ref, dC_ref, dh_ref, h_ref = (
            refs
        )

        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            dh_ref[...] = dlast_ref[0]
            dA_ref[...] = jnp.zeros_like(dA_ref)

        A, B, C = A_ref[0], B_ref[0], C_ref[0]
        lane = jax.lax.broadcasted_iota(jnp.int32, B.shape, 1)

        def again(t: jax.Array, h: jax.Array) -> jax.Array:
            h_ref[t] = h
            delta = delta_ref[0, pl.ds(t, 1), :]
            return jnp.exp(delta * A) * h + (delta * u_ref[0, pl.ds(t, 1), :]) * column_at(B, t)

        def back(i: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            t = tall - 1 - i
            dh, h, dA, dB, dC = carry
            delta, u, dy = (ref[0, pl.ds(t, 1), :] for ref in (delta_ref, u_ref, dy_ref))
            decay, before, column = jnp.exp(delta * A), h_ref[t], column_at(B, t)
            dh = dh + dy * column_at(C, t)
            dC = jnp.where(lane == t, jnp.sum(dy * h, axis=1, keepdims=True), dC)
            dB = jnp.where(lane == t, jnp.sum(dh * (delta * u), axis=1, keepdims=True), dB)
            through = dh * before * decay
            ddelta_ref[0, pl.ds(t, 1), :] = jnp.sum(through * A + dh * u * column, axis=0, keepdims=True)
            du_ref[0, pl.ds(t, 1), :] = jnp.sum(dh * column, axis=0, keepdims=True) * delta
            return dh * decay, before, dA + through * delta, dB, dC

        last = jax.lax.fori_loop(0, tall, again, starts_ref[0, 0])
        none = jnp.zeros_like(B)
        dh, _, dA, dB, dC = jax.lax.fori_loop(0, tall, back, (dh_ref[...], last, jnp.zeros_like(A), none, none))
        dh_ref[...], dB_ref[0, 0], dC_ref[0, 0] = dh, dB, dC
        dA_ref[0] += dA

    spec = scan_specs(A, blocks, chunks, backwards=True)
    columns = jax.ShapeDtypeStruct((sequences, parts, states, length), jnp.float32)
    rows = jax.ShapeDtypeStruct(u.shape, jnp.float32)
    du, ddelta, dA, dB, dC = pl.pallas_call(
        body,
        grid=(sequences, parts, chunks),
        in_specs=[spec[name] for name in ("rows", "rows", "rates", "columns", "columns", "starts", "rows", "state")],
        out_specs=[spec[name] for name in ("rows", "rows", "state", "parts", "parts")],
        out_shape=[rows, rows, jax.ShapeDtypeStruct((sequences, states, width), jnp.float32), columns, columns],
        scratch_shapes=[pltpu.VMEM((states, wide), jnp.float32), pltpu.VMEM((tall, states, wide), jnp.float32)],
        compiler_params=SCAN_ORDER,
    )(u, delta, A, B, C, starts, *grads)
    return du, ddelta, dA.reshape(-1, groups, states, width).sum(0), dB.sum(1), dC.sum(1)


def scan_saving(
    u: jax.Array, delta: jax.Array, A: jax.Array, B: jax.Array, C: jax.Array, blocks: tuple[int, int]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, ...]]:
    """The result, and what the gradient needs."""
    y, last, starts = scan_forward(u, delta, A, B, C, blocks)
    return (y, last), (u, delta, A, B, C, starts)


scan_chunks = with_gradient(
    lambda u, delta, A, B, C, blocks: scan_forward(u, delta, A, B, C, blocks)[:2], scan_saving, scan_backward, static=(5,)
)


SHAPES = (
    Case((Array((2, 128, 64)), Array((2, 128, 64), "positive"), Array((128, 16), "negative"), Array((2, 16, 64)), Array((2, 16, 64)))),
    Case(
        (
            Array((1, 12, 37)),
            Array((1, 12, 37)),
            Array((12, 5), "negative"),
            Array((1, 2, 5, 37)),
            Array((1, 2, 5, 37)),
            Array((12,)),
            Array((1, 12, 37)),
            Array((12,)),
        ),
        {"delta_softplus": True, "return_last_state": True},
    ),
    Case((Array((2, 6, 140)), Array((2, 6, 140), "positive"), Array((6, 4), "negative"), Array((6, 4)), Array((2, 4, 140)))),
    Case((Array((1, 3, 5)), Array((1, 3, 5), "positive"), Array((3, 2), "negative"), Array((1, 2, 5)), Array((1, 2, 5))), tiny=True),
)
KERNEL = Kernel(
    "selective_scan",
    selective_scan,
    origin="ours: none is maintained",
    gradient="kernel",
    shapes=SHAPES,
    bench=(
        Case(
            (Array((4, 5120, 2048)), Array((4, 5120, 2048), "positive"), Array((5120, 16), "negative"), *[Array((4, 16, 2048))] * 2),
        ),
    ),
)
