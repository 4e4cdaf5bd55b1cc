"""A linear layer and cross entropy in one, without the logits in memory. The TPU kernel is ours: jax maintains none, and tokamax's takes XLA
wherever the program is not lowered on the device itself.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import float_reason, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half


def fused_linear_cross_entropy(
    x: jax.Array,
    weight: jax.Array,
    target: jax.Array,
    bias: jax.Array | None = None,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    implementation: str = "xla",
) -> jax.Array:
    """cross_entropy(x weightᵀ + bias, target): (M, D), (V, D), int (M,), (V,) → (), or (M,) with `reduction="none"`, in at least float32.

    Rows whose target is `ignore_index` count for nothing; the mean is over the others. Float32 and bfloat16 have a TPU kernel for D up to
    4096 (float32) or 8192 (bfloat16); it holds blocks of the logits only, forward and backward.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """
    reason = float_reason(x, weight) or linear_blocks(x)[1] or ("" if x.dtype == weight.dtype else f"{x.dtype} x, {weight.dtype} weight")
    kept = target != ignore_index
    label = jnp.where(kept, target, 0).astype(jnp.int32)
    total, chosen, mean = run_kernel(
        "fused_linear_cross_entropy", implementation, reason, logits_on_tpu, logits_reference, x, weight, label, bias
    )
    losses = jnp.where(kept, (1 - label_smoothing) * (total - chosen) + label_smoothing * (total - mean), 0)
    if reduction == "none":
        return losses
    return losses.sum() / kept.sum() if reduction == "mean" else losses.sum()


class FusedLinearCrossEntropyLoss(nnx.Module):
    """A loss that takes a linear layer's weight (V, D) and bias (V,) with its input (M, D) and the classes (M,)."""

    def __init__(
        self, ignore_index: int = -100, label_smoothing: float = 0.0, reduction: str = "mean", *, implementation: str = "xla"
    ) -> None:
        self.ignore_index, self.label_smoothing, self.reduction = ignore_index, label_smoothing, reduction
        self.implementation = implementation

    def __call__(self, weight: jax.Array, x: jax.Array, target: jax.Array, bias: jax.Array | None = None) -> jax.Array:
        return fused_linear_cross_entropy(
            x,
            weight,
            target,
            bias,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            reduction=self.reduction,
            implementation=self.implementation,
        )


def logits_reference(x: jax.Array, weight: jax.Array, label: jax.Array, bias: jax.Array | None) -> tuple[jax.Array, ...]:
    """Of each row's logits the log-sum-exp, the label's and the mean: (M,) each, in at least float32."""
    wide = promote_half(x)
    logits = jax.lax.dot_general(x, weight, (((1,), (1,)), ((), ())), preferred_element_type=wide.dtype)
    logits = logits if bias is None else logits + promote_half(bias)
    chosen = jnp.take_along_axis(logits, label[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(logits, axis=1), chosen, logits.mean(1)


def logits_on_tpu(x: jax.Array, weight: jax.Array, label: jax.Array, bias: jax.Array | None) -> tuple[jax.Array, ...]:
    """The same by the TPU kernel."""
    row = jnp.zeros((1, weight.shape[0]), jnp.float32) if bias is None else promote_half(bias)[None]
    total, chosen, whole = linear_rows(x, weight, label[:, None], row)
    return total[:, 0], chosen[:, 0], whole[:, 0] / weight.shape[0]


def linear_blocks(x: jax.Array) -> tuple[int, str]:
    """How many rows (of tokens, and of the vocabulary) make one block, and why there is no kernel."""
    bytes_a_row = x.shape[1] * x.dtype.itemsize
    if bytes_a_row > 16384:
        return 0, f"a row of {x.shape[1]} {x.dtype} is too long for VMEM"
    return 256 if bytes_a_row <= 4096 else 128, ""


def logits_of(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    """Inside a kernel: (m, D), (v, D), (1, v) → (m, v), float32. Float32 operands are multiplied in full precision."""
    precision = jax.lax.Precision.HIGHEST if x.dtype == jnp.float32 else None
    product = jax.lax.dot_general(x, weight, (((1,), (1,)), ((), ())), precision=precision, preferred_element_type=jnp.float32)
    return product + bias


def existing(block: jax.Array, index: jax.Array | int, size: int) -> jax.Array:
    """Inside a kernel: a block of rows with those past `size` zeroed, as what is read there is undefined."""
    row = index * block.shape[0] + jax.lax.broadcasted_iota(jnp.int32, (block.shape[0], 1), 0)
    return jnp.where(row < size, block, jnp.zeros_like(block))


def linear_forward(x: jax.Array, weight: jax.Array, label: jax.Array, bias: jax.Array) -> tuple[jax.Array, ...]:
    """(M, D), (V, D), int32 (M, 1), float32 (1, V) → log-sum-exp, the label's logit and the sum of the logits: float32 (M, 1) each."""
    (rows, width), words, block = x.shape, weight.shape[0], linear_blocks(x)[0]

    def body(
        x_ref: Any, weight_ref: Any, label_ref: Any, bias_ref: Any, total_ref: Any, chosen_ref: Any, whole_ref: Any, top_ref: Any
    ) -> None:
        step = pl.program_id(1)

        @pl.when(step == 0)
        def _() -> None:
            top_ref[...] = jnp.full_like(top_ref, -jnp.inf)
            for ref in (total_ref, chosen_ref, whole_ref):
                ref[...] = jnp.zeros_like(ref)

        word = step * block + jax.lax.broadcasted_iota(jnp.int32, (x_ref.shape[0], block), 1)
        logits = logits_of(x_ref[...], weight_ref[...], bias_ref[...])
        shown = jnp.where(word < words, logits, -jnp.inf)
        top = jnp.maximum(top_ref[...], jnp.max(shown, axis=1, keepdims=True))
        total_ref[...] = total_ref[...] * jnp.exp(top_ref[...] - top) + jnp.sum(jnp.exp(shown - top), axis=1, keepdims=True)
        top_ref[...] = top
        chosen_ref[...] += jnp.sum(jnp.where(word == label_ref[...], logits, 0), axis=1, keepdims=True)
        whole_ref[...] += jnp.sum(jnp.where(word < words, logits, 0), axis=1, keepdims=True)

        @pl.when(step == pl.num_programs(1) - 1)
        def _() -> None:
            total_ref[...] = jnp.log(total_ref[...]) + top_ref[...]

    tall = min(block, rows)
    column = pl.BlockSpec((tall, 1), lambda i, j: (i, 0))
    return tuple(
        pl.pallas_call(
            body,
            grid=(pl.cdiv(rows, tall), pl.cdiv(words, block)),
            in_specs=[
                pl.BlockSpec((tall, width), lambda i, j: (i, 0)),
                pl.BlockSpec((block, width), lambda i, j: (j, 0)),
                column,
                pl.BlockSpec((1, block), lambda i, j: (0, j)),
            ],
            out_specs=[column] * 3,
            out_shape=[jax.ShapeDtypeStruct((rows, 1), jnp.float32)] * 3,
            scratch_shapes=[pltpu.VMEM((tall, 1), jnp.float32)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
        )(x, weight, label, bias)
    )


def linear_backward(saved: tuple[jax.Array, ...], grads: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array, None, jax.Array]:
    """The gradients of x, weight and bias; the logits are computed again, block by block, once for each side."""
    x, weight, label, bias, total = saved
    columns = [label, total, *grads]
    dx = logits_gradient(x, weight, columns, bias, of_weight=False)[0]
    dweight, dbias = logits_gradient(x, weight, columns, bias, of_weight=True)
    return dx, dweight, None, dbias.astype(bias.dtype)


def logits_gradient(x: jax.Array, weight: jax.Array, columns: list[jax.Array], bias: jax.Array, of_weight: bool) -> list[jax.Array]:
    """The gradient of x, or with `of_weight` those of weight and bias. `columns` are label, log-sum-exp and the gradients of the three results."""
    (rows, width), words, block = x.shape, weight.shape[0], linear_blocks(x)[0]
    tall = min(block, rows)
    axis = 0 if of_weight else 1
    """Where the tokens are in the grid; the other axis is the vocabulary's. The inner one is summed over."""
    outer, inner = (pl.cdiv(words, block), pl.cdiv(rows, tall)) if of_weight else (pl.cdiv(rows, tall), pl.cdiv(words, block))

    def body(x_ref: Any, weight_ref: Any, bias_ref: Any, *refs: Any) -> None:
        label_ref, total_ref, dtotal_ref, dchosen_ref, dwhole_ref, *out = refs
        token, step = pl.program_id(1 - axis), pl.program_id(axis)
        x, weight = existing(x_ref[...], token, rows), existing(weight_ref[...], step, words)
        shape = (tall, block)
        word = step * block + jax.lax.broadcasted_iota(jnp.int32, shape, 1)
        row = token * tall + jax.lax.broadcasted_iota(jnp.int32, shape, 0)
        share = dtotal_ref[...] * jnp.exp(logits_of(x, weight, bias_ref[...]) - total_ref[...])
        grad = share + jnp.where(word == label_ref[...], dchosen_ref[...], 0) + dwhole_ref[...]
        grad = jnp.where((row < rows) & (word < words), grad, 0)
        sum_ref, other = out[-1], x if of_weight else weight
        precision = jax.lax.Precision.HIGHEST if x.dtype == jnp.float32 else None
        contract = (((0 if of_weight else 1,), (0,)), ((), ()))

        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)
            if of_weight:
                out[1][...] = jnp.zeros_like(out[1])

        sum_ref[...] += jax.lax.dot_general(grad.astype(x.dtype), other, contract, precision=precision, preferred_element_type=jnp.float32)
        if of_weight:
            out[1][...] += jnp.sum(grad, axis=0, keepdims=True)

        @pl.when(pl.program_id(1) == inner - 1)
        def _() -> None:
            out[0][...] = sum_ref[...].astype(out[0].dtype)

    def spec(height: int, width: int, tokens: bool) -> pl.BlockSpec:
        return pl.BlockSpec((height, width), (lambda i, j: (i, 0)) if tokens != of_weight else (lambda i, j: (j, 0)))

    biases = pl.BlockSpec((1, block), (lambda i, j: (0, i)) if of_weight else (lambda i, j: (0, j)))
    mine = spec(block, width, tokens=False) if of_weight else spec(tall, width, tokens=True)
    results = [jax.ShapeDtypeStruct((words, width), weight.dtype), jax.ShapeDtypeStruct((1, words), jnp.float32)]
    found: list[jax.Array] = pl.pallas_call(
        body,
        grid=(outer, inner),
        in_specs=[spec(tall, width, True), spec(block, width, False), biases, *[spec(tall, 1, True)] * 5],
        out_specs=[mine, biases] if of_weight else [mine],
        out_shape=results if of_weight else [jax.ShapeDtypeStruct(x.shape, x.dtype)],
        scratch_shapes=[pltpu.VMEM((block if of_weight else tall, width), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(x, weight, bias, *columns)
    return found


def linear_saving(
    x: jax.Array, weight: jax.Array, label: jax.Array, bias: jax.Array
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """The result, and what the gradient needs."""
    found = linear_forward(x, weight, label, bias)
    return found, (x, weight, label, bias, found[0])


linear_rows = with_gradient(linear_forward, linear_saving, linear_backward)


SHAPES = (
    Case((Array((64, 128)), Array((512, 128), scale=0.1), Array((64,), "int", 512), None)),
    Case((Array((300, 40)), Array((331, 40), scale=0.1), Array((300,), "int", 331), Array((331,))), {"label_smoothing": 0.1}),
    Case((Array((7, 24)), Array((5, 24)), Array((7,), "int", 5), None), {"reduction": "none", "ignore_index": 3}),
    Case((Array((6, 8)), Array((300, 8)), Array((6,), "int", 300), Array((300,))), {"reduction": "sum"}, tiny=True),
)
KERNEL = Kernel(
    "linear_cross_entropy",
    fused_linear_cross_entropy,
    origin="ours: tokamax's takes XLA unless it is lowered on the device",
    gradient="kernel",
    shapes=SHAPES,
    bench=(Case((Array((8192, 2048)), Array((32000, 2048), scale=0.02), Array((8192,), "int", 32000), None)),),
)
