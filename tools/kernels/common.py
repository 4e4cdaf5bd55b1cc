"""What the kernels share: which implementation runs, gradients, and calls over blocks of rows."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

IMPLEMENTATIONS = ("xla", "auto", "tpu")
"""`xla`: plain JAX. `auto`: the TPU kernel where the program is compiled for a TPU. `tpu`: the kernel and nothing else."""


class KernelFallback(UserWarning):
    """A kernel was asked for, and plain JAX runs in its place; the text says why."""


def run_kernel(
    name: str,
    implementation: str,
    reason: str,
    kernel: Callable[..., Any],
    reference: Callable[..., Any],
    *operands: Any,
) -> Any:
    """Run `kernel` or `reference` on the operands, as `implementation` asks.

    `reason` says why the kernel cannot take these operands ("" where it can): `auto` then warns and runs the reference, `tpu` raises
    `NotImplementedError`. With `auto` the platform is chosen when the program is lowered, so one program serves CPU, GPU and TPU.
    """
    if implementation not in IMPLEMENTATIONS:
        raise ValueError(f"{name}: implementation={implementation!r} is none of {', '.join(IMPLEMENTATIONS)}")
    if implementation == "xla":
        return reference(*operands)
    reason = reason or ("" if all(x is None or x.size for x in operands) else "an operand is empty")
    if reason and implementation == "tpu":
        raise NotImplementedError(f"{name}: {reason}")
    if reason:
        warnings.warn(f"{name} runs as plain JAX: {reason}", KernelFallback, stacklevel=3)
        return reference(*operands)
    if implementation == "tpu":
        return kernel(*operands)
    return jax.lax.platform_dependent(*operands, tpu=kernel, default=reference)


def float_reason(*arrays: jax.Array | None) -> str:
    """Why a TPU kernel cannot take these arrays by their dtype: it computes on float32 and bfloat16."""
    odd = {str(x.dtype) for x in arrays if x is not None and x.dtype not in (jnp.float32, jnp.bfloat16)}
    return f"the TPU kernel takes float32 and bfloat16, not {', '.join(sorted(odd))}" if odd else ""


def with_gradient(
    function: Callable[..., Any], forward: Callable[..., Any], backward: Callable[..., Any], static: tuple[int, ...] = ()
) -> Callable[..., Any]:
    """`function` with `forward` and `backward` in the sense of `jax.custom_vjp`; `static` are the positions that are no arrays."""
    wrapped = jax.custom_vjp(function, nondiff_argnums=static)
    wrapped.defvjp(forward, backward)
    return wrapped


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple that is not less than `value`."""
    return -(-value // multiple) * multiple


def pad_axis(x: jax.Array, axis: int, size: int, value: float = 0) -> jax.Array:
    """`x` with `value` added at the end of `axis` until it has `size`."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, size - x.shape[axis])
    return jnp.pad(x, widths, constant_values=value) if size != x.shape[axis] else x


VMEM_BLOCK_BYTES = 1 << 20
"""What one float32 block of rows may take, so that a dozen of them fit in the 16 MiB that a kernel may use of a TPU v5e by default."""

ELEMENTWISE_WIDTH = 2048


def row_block(rows: int, width: int) -> int:
    """How many rows of `width` float32 make one block: a multiple of 16, or all of them."""
    fitting = VMEM_BLOCK_BYTES // (4 * round_up(width, 128)) // 16 * 16
    return rows if rows <= min(fitting, 512) else min(fitting, 512)


def row_reason(width: int) -> str:
    """Why rows of this width have no kernel."""
    return "" if row_block(1 << 30, width) else f"a row of {width} is too long for VMEM"


def call_by_rows(
    body: Callable[..., None],
    inputs: Sequence[jax.Array],
    outputs: Sequence[tuple[Any, ...]],
    accumulates: bool = False,
    elementwise: bool = False,
) -> list[jax.Array]:
    """Run a kernel over blocks of rows. Inputs (rows, …) and outputs (rows, width, dtype) go by blocks, those of one row go whole to all.

    The last block may be partly outside: what is read there is undefined and what is written there is dropped. `accumulates` says that an
    output of one row is written by all blocks in turn; `elementwise` that wide rows may be cut, as all arrays have one shape.
    """
    rows, width = max(x.shape[0] for x in inputs), max(x.shape[1] for x in inputs)
    piece = min(width, ELEMENTWISE_WIDTH) if elementwise else width
    block = row_block(rows, piece)

    def spec(height: int, width: int) -> pl.BlockSpec:
        if height == 1 and not elementwise:
            return pl.BlockSpec((1, width), lambda i, j: (0, 0))
        return pl.BlockSpec((block, piece if elementwise else width), lambda i, j: (i, j))

    found: list[jax.Array] = pl.pallas_call(
        body,
        grid=(pl.cdiv(rows, block), pl.cdiv(width, piece)),
        in_specs=[spec(*x.shape) for x in inputs],
        out_specs=[spec(height, width) for height, width, _ in outputs],
        out_shape=[jax.ShapeDtypeStruct((height, width), dtype) for height, width, dtype in outputs],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary" if accumulates else "parallel",) * 2),
    )(*inputs)
    return found


def rows_inside(block: int, rows: int) -> jax.Array:
    """(block, 1) bool, inside a kernel over blocks of rows: which rows of this block exist."""
    return pl.program_id(0) * block + jax.lax.broadcasted_iota(jnp.int32, (block, 1), 0) < rows
