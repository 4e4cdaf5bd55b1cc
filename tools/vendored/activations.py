"""Activation functions with PyTorch's semantics, also where JAX's defaults or gradients at kinks differ."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike

from migrate_agent.tools.vendored.numeric import promote_half


def softmax(input: jax.Array, dim: int | None = None, dtype: DTypeLike | None = None) -> jax.Array:
    """exp(x) / Σ exp(x) over axis `dim`, computed in at least float32; `input` is first converted to `dtype`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html
    """
    input = input if dtype is None else input.astype(dtype)
    x = jnp.atleast_1d(promote_half(input))
    axis = default_softmax_dim(input.ndim) if dim is None else dim
    return jax.nn.softmax(x, axis).reshape(input.shape).astype(input.dtype)


def log_softmax(input: jax.Array, dim: int | None = None, dtype: DTypeLike | None = None) -> jax.Array:
    """log(softmax(x)) over axis `dim`, computed in at least float32; `input` is first converted to `dtype`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    """
    input = input if dtype is None else input.astype(dtype)
    x = jnp.atleast_1d(promote_half(input))
    axis = default_softmax_dim(input.ndim) if dim is None else dim
    return jax.nn.log_softmax(x, axis).reshape(input.shape).astype(input.dtype)


def default_softmax_dim(ndim: int) -> int:
    """The axis that PyTorch's softmax takes where none is named: 0 for 0, 1 or 3 axes, else 1."""
    return 0 if ndim in (0, 1, 3) else 1


def softmin(input: jax.Array, dim: int | None = None, dtype: DTypeLike | None = None) -> jax.Array:
    """softmax(-x). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmin.html"""
    return softmax(-input, dim, dtype)


def gelu(input: jax.Array, approximate: str = "none") -> jax.Array:
    """x Φ(x), exact by default, or its `tanh` approximation.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html
    """
    return jax.nn.gelu(promote_half(input), approximate=approximate == "tanh").astype(input.dtype)


def hardtanh(input: jax.Array, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> jax.Array:
    """Clips to [min_val, max_val]; the gradient at the bounds is zero.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardtanh.html
    """
    return jnp.where(input <= min_val, min_val, jnp.where(input >= max_val, max_val, input)).astype(input.dtype)


def relu6(input: jax.Array, inplace: bool = False) -> jax.Array:
    """Clips to [0, 6]. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.relu6.html"""
    return hardtanh(input, 0.0, 6.0)


def hardsigmoid(input: jax.Array, inplace: bool = False) -> jax.Array:
    """relu6(x + 3) / 6. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardsigmoid.html"""
    return hardtanh(input + 3, 0.0, 6.0) / 6


def hardswish(input: jax.Array, inplace: bool = False) -> jax.Array:
    """x relu6(x + 3) / 6. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardswish.html"""
    return jnp.where(input <= -3, input * 0, jnp.where(input >= 3, input, input * (input + 3) / 6))


def leaky_relu(input: jax.Array, negative_slope: float = 0.01, inplace: bool = False) -> jax.Array:
    """x where positive, else `negative_slope` x. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.leaky_relu.html"""
    return jnp.where(input > 0, input, input * negative_slope)


def prelu(input: jax.Array, weight: jax.Array) -> jax.Array:
    """x where positive, else `weight` x, with one weight or one for each channel (axis 1).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.prelu.html
    """
    if weight.size > 1 and input.ndim > 1:
        weight = weight.reshape(1, -1, *[1] * (input.ndim - 2))
    return jnp.where(input > 0, input, weight.reshape(()) * input if weight.size == 1 else weight * input)


def rrelu(
    input: jax.Array,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    *,
    rngs: nnx.Rngs | None = None,
) -> jax.Array:
    """Leaky ReLU whose slope is drawn from U(lower, upper) for each element in training, and is their mean otherwise.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rrelu.html
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    if rngs is None:
        raise ValueError("rrelu in training mode needs rngs")
    slope = jax.random.uniform(rngs.dropout(), input.shape, input.dtype, lower, upper)
    return jnp.where(input > 0, input, input * slope)


def elu(input: jax.Array, alpha: float = 1.0, inplace: bool = False) -> jax.Array:
    """x where positive, else `alpha` (exp(x) - 1). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.elu.html"""
    return jax.nn.elu(input, alpha)


def celu(input: jax.Array, alpha: float = 1.0, inplace: bool = False) -> jax.Array:
    """x where positive, else `alpha` (exp(x / alpha) - 1). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.celu.html"""
    return jnp.where(input > 0, input, alpha * jnp.expm1(jnp.where(input > 0, 0, input) / alpha))


def glu(input: jax.Array, dim: int = -1) -> jax.Array:
    """The first half along `dim`, gated by the sigmoid of the second.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.glu.html
    """
    value, gate = jnp.split(input, 2, axis=dim)
    return value * jax.nn.sigmoid(gate)


def mish(input: jax.Array, inplace: bool = False) -> jax.Array:
    """x tanh(softplus(x)). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.mish.html"""
    x = promote_half(input)
    return (x * jnp.tanh(jax.nn.softplus(x))).astype(input.dtype)


def softplus(input: jax.Array, beta: float = 1.0, threshold: float = 20.0) -> jax.Array:
    """log(1 + exp(beta x)) / beta, and x itself where beta x > threshold.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softplus.html
    """
    is_linear = input * beta > threshold
    scaled = promote_half(jnp.where(is_linear, 0, input * beta))
    return jnp.where(is_linear, input, (jnp.log1p(jnp.exp(scaled)) / beta).astype(input.dtype))


def softshrink(input: jax.Array, lambd: float = 0.5) -> jax.Array:
    """Moves x towards zero by `lambd`. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softshrink.html"""
    return jnp.where(input > lambd, input - lambd, jnp.where(input < -lambd, input + lambd, input * 0))


def hardshrink(input: jax.Array, lambd: float = 0.5) -> jax.Array:
    """Zero within [-lambd, lambd], else x. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardshrink.html"""
    return jnp.where((input >= -lambd) & (input <= lambd), 0, input)


def tanhshrink(input: jax.Array) -> jax.Array:
    """x - tanh(x). https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.tanhshrink.html"""
    return input - jnp.tanh(input)


def threshold(input: jax.Array, threshold: float, value: float, inplace: bool = False) -> jax.Array:
    """x where above `threshold`, else `value`. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.threshold.html"""
    return jnp.where(input <= threshold, value, input).astype(input.dtype)
