"""Normalisations as functions, with PyTorch's semantics: biased variance in two passes, reductions in at least float32."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from migrate_agent.tools.vendored.numeric import promote_half


def standardise(x: jax.Array, axes: Sequence[int], eps: float) -> jax.Array:
    """`x` less its mean over `axes`, over its biased standard deviation: (x - E[x]) / √(Var[x] + eps)."""
    centred = x - x.mean(axes, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(axes, keepdims=True) + eps)


def scale_and_shift(x: jax.Array, weight: jax.Array | None, bias: jax.Array | None) -> jax.Array:
    """`x * weight + bias`, either of which may be `None`."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def per_channel(values: jax.Array | None, ndim: int) -> jax.Array | None:
    """(C,) → (1, C, 1, …) with `ndim` axes."""
    return None if values is None else values.reshape(1, -1, *[1] * (ndim - 2))


def require_channels(input: jax.Array, *values: jax.Array | None) -> None:
    """Raises `ValueError` where one of the values (C,) is not one for each channel of `input` (N, C, …), and would be broadcast."""
    for value in values:
        if value is not None and value.shape != input.shape[1:2]:
            raise ValueError(f"an input of shape {input.shape} has {input.shape[1]} channels, not {value.shape[0]}")


def require_shape(input: jax.Array, normalized_shape: Sequence[int]) -> None:
    """Raises `ValueError` where the last axes of `input` are not those that are normalised."""
    if input.shape[-len(normalized_shape) :] != tuple(normalized_shape):
        raise ValueError(f"an input of shape {input.shape} does not end in {tuple(normalized_shape)}")


def layer_norm(
    input: jax.Array,
    normalized_shape: Sequence[int],
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    eps: float = 1e-5,
) -> jax.Array:
    """Normalises over the last `len(normalized_shape)` axes.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html
    """
    require_shape(input, normalized_shape)
    axes = tuple(range(-len(normalized_shape), 0))
    return scale_and_shift(standardise(promote_half(input), axes, eps), weight, bias).astype(input.dtype)


def rms_norm(input: jax.Array, normalized_shape: Sequence[int], weight: jax.Array | None = None, eps: float | None = None) -> jax.Array:
    """`x / √(mean(x²) + eps) * weight` over the last axes; `eps` defaults to the machine epsilon of the input's dtype.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html
    """
    require_shape(input, normalized_shape)
    axes = tuple(range(-len(normalized_shape), 0))
    x = promote_half(input)
    epsilon = jnp.finfo(input.dtype).eps if eps is None else eps
    normal = x * lax.rsqrt(jnp.square(x).mean(axes, keepdims=True) + epsilon)
    return scale_and_shift(normal, weight, None).astype(input.dtype)


def group_norm(
    input: jax.Array, num_groups: int, weight: jax.Array | None = None, bias: jax.Array | None = None, eps: float = 1e-5
) -> jax.Array:
    """Normalises each of `num_groups` groups of channels of (N, C, …).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.group_norm.html
    """
    require_channels(input, weight, bias)
    grouped = promote_half(input).reshape(input.shape[0], num_groups, math.prod(input.shape[1:]) // num_groups)
    normal = standardise(grouped, (-1,), eps).reshape(input.shape)
    return scale_and_shift(normal, per_channel(weight, input.ndim), per_channel(bias, input.ndim)).astype(input.dtype)


def instance_norm(
    input: jax.Array,
    running_mean: jax.Array | None = None,
    running_var: jax.Array | None = None,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> jax.Array:
    """Normalises each channel of each sample of (N, C, …), or by the running statistics; these are not updated here.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.instance_norm.html
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    require_channels(input, weight, bias)
    normal = standardise(promote_half(input), tuple(range(2, input.ndim)), eps)
    return scale_and_shift(normal, per_channel(weight, input.ndim), per_channel(bias, input.ndim)).astype(input.dtype)


def batch_norm(
    input: jax.Array,
    running_mean: jax.Array | None,
    running_var: jax.Array | None,
    weight: jax.Array | None = None,
    bias: jax.Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> jax.Array:
    """Normalises the channels (axis 1) by the batch's statistics (`training`) or the running ones; these are not updated here.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html
    """
    require_channels(input, running_mean, running_var, weight, bias)
    x = promote_half(input)
    if training or running_mean is None or running_var is None:
        normal = standardise(x, (0, *range(2, x.ndim)), eps)
    else:
        mean, var = running_mean.reshape(1, -1, *[1] * (x.ndim - 2)), running_var.reshape(1, -1, *[1] * (x.ndim - 2))
        normal = (x - mean) * lax.rsqrt(promote_half(var) + eps)
    return scale_and_shift(normal, per_channel(weight, x.ndim), per_channel(bias, x.ndim)).astype(input.dtype)


def local_response_norm(input: jax.Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> jax.Array:
    """Divides by a power of the mean square over `size` neighbouring channels of (N, C, …).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.local_response_norm.html
    """
    window = (1, size, *[1] * (input.ndim - 2))
    sides = [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (input.ndim - 2)]
    if not input.size:
        return input
    total = lax.reduce_window(jnp.square(input), np.zeros((), input.dtype), lax.add, window, (1,) * input.ndim, sides)
    mean = total / size if jnp.issubdtype(input.dtype, jnp.inexact) else total // size
    return input / (k + alpha * mean) ** beta
