"""SwiGLU, GEGLU and their kind: activation(gate) · up. The TPU kernel is ours: jax and tokamax maintain none for TPUs."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from migrate_agent.tools.kernels.catalogue import Array, Case, Kernel
from migrate_agent.tools.kernels.common import call_by_rows, float_reason, run_kernel, with_gradient
from migrate_agent.tools.vendored.numeric import promote_half

GATES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "silu": jax.nn.silu,
    "gelu": lambda x: x * (1 + jax.lax.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) / 2,
    "relu": lambda x: jnp.maximum(x, 0),
    "sigmoid": jax.nn.sigmoid,
}
"""Activation → its function in float32: SwiGLU has `silu`, GEGLU `gelu`, ReGLU `relu`, GLU `sigmoid`."""


def gated_activation(gate: jax.Array, up: jax.Array, *, activation: str = "silu", implementation: str = "xla") -> jax.Array:
    """activation(gate) · up: (…, D), (…, D) → (…, D), in `gate`'s dtype. Computed in float32 and rounded once.

    `activation` is one of `silu`, `gelu` (exact), `gelu_tanh`, `relu`, `sigmoid`. Float32 and bfloat16 have a TPU kernel.
    https://arxiv.org/abs/2002.05202
    """
    reason = float_reason(gate, up)
    if gate.shape != up.shape:
        raise ValueError(f"gated_activation: gate has shape {gate.shape}, up has {up.shape}")
    kernel, reference = partial(gated_on_tpu, activation=activation), partial(gated_reference, activation=activation)
    return run_kernel("gated_activation", implementation, reason, kernel, reference, gate, up)


def gated_reference(gate: jax.Array, up: jax.Array, activation: str) -> jax.Array:
    """The same in plain JAX."""
    return (GATES[activation](promote_half(gate)) * promote_half(up)).astype(gate.dtype)


def gated_on_tpu(gate: jax.Array, up: jax.Array, activation: str) -> jax.Array:
    """The same by the TPU kernel."""
    width = gate.shape[-1]
    return gated_rows(gate.reshape(-1, width), up.reshape(-1, width), activation).reshape(gate.shape)


def gated_forward(gate: jax.Array, up: jax.Array, activation: str) -> jax.Array:
    """(rows, D), (rows, D) → (rows, D)."""

    def body(gate_ref: Any, up_ref: Any, y_ref: Any) -> None:
        y_ref[...] = (GATES[activation](gate_ref[...].astype(jnp.float32)) * up_ref[...].astype(jnp.float32)).astype(y_ref.dtype)

    return call_by_rows(body, [gate, up], [(*gate.shape, gate.dtype)], elementwise=True)[0]


def gated_backward(activation: str, saved: tuple[jax.Array, jax.Array], grad: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The gradients of gate and up; the activation is computed again."""

    def body(gate_ref: Any, up_ref: Any, grad_ref: Any, dgate_ref: Any, dup_ref: Any) -> None:
        gate, up, grad = (ref[...].astype(jnp.float32) for ref in (gate_ref, up_ref, grad_ref))
        opened, slope = jax.jvp(GATES[activation], (gate,), (jnp.ones_like(gate),))
        dgate_ref[...] = (grad * up * slope).astype(dgate_ref.dtype)
        dup_ref[...] = (grad * opened).astype(dup_ref.dtype)

    gate, up = saved
    results = [(*gate.shape, gate.dtype), (*up.shape, up.dtype)]
    dgate, dup = call_by_rows(body, [gate, up, grad], results, elementwise=True)
    return dgate, dup


gated_rows = with_gradient(
    gated_forward, lambda gate, up, activation: (gated_forward(gate, up, activation), (gate, up)), gated_backward, static=(2,)
)


SHAPES = (
    Case((Array((2, 16, 128)), Array((2, 16, 128)))),
    Case((Array((3, 37, 90)), Array((3, 37, 90))), {"activation": "gelu"}),
    Case((Array((700, 5)), Array((700, 5))), {"activation": "gelu_tanh"}),
    Case((Array((9,)), Array((9,))), {"activation": "sigmoid"}),
    Case((Array((3, 2100)), Array((3, 2100)))),
    Case((Array((33, 40)), Array((33, 40))), {"activation": "relu"}),
    Case((Array((5, 7, 3)), Array((5, 7, 3))), tiny=True),
)
KERNEL = Kernel(
    "gated_activation",
    gated_activation,
    origin="ours: none is maintained for TPUs",
    gradient="kernel",
    shapes=SHAPES,
    bench=(Case((Array((4, 2048, 11008)), Array((4, 2048, 11008)))),),
)
