"""Initial values with `torch.nn.init`'s distributions (https://docs.pytorch.org/docs/stable/nn.init.html).

Each takes a key and the array or variable to be initialised (for its shape and dtype) and returns the new value. Fans are counted for torch's layout
(out, in, …); a variable marked `features_last` holds (…, in, out).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp


def init_normal(key: jax.Array, like: Any, mean: float = 0.0, std: float = 1.0) -> jax.Array:
    """N(mean, std²)."""
    return mean + std * jax.random.normal(key, like.shape, like.dtype)


def init_uniform(key: jax.Array, like: Any, a: float = 0.0, b: float = 1.0) -> jax.Array:
    """U(a, b)."""
    return jax.random.uniform(key, like.shape, like.dtype, a, b)


def init_trunc_normal(key: jax.Array, like: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> jax.Array:
    """N(mean, std²) cut off at the values `a` and `b`."""
    return mean + std * jax.random.truncated_normal(key, (a - mean) / std, (b - mean) / std, like.shape, like.dtype)


def init_fans(like: Any) -> tuple[int, int]:
    """Fan in and fan out of a weight. Raises `ValueError` below two axes."""
    shape = like.shape
    if len(shape) < 2:
        raise ValueError(f"fan in and fan out need at least two axes, not shape {shape}")
    if getattr(like, "features_last", False):
        field = math.prod(shape[:-2])
        return shape[-2] * field, shape[-1] * field
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def init_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain of a nonlinearity (https://docs.pytorch.org/docs/stable/nn.init.html#torch.nn.init.calculate_gain)."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    return {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}.get(nonlinearity, 1.0)


def init_xavier_uniform(key: jax.Array, like: Any, gain: float = 1.0) -> jax.Array:
    """U(-a, a) with a = gain·√(6 / (fan in + fan out))."""
    bound = gain * math.sqrt(6.0 / sum(init_fans(like)))
    return init_uniform(key, like, -bound, bound)


def init_xavier_normal(key: jax.Array, like: Any, gain: float = 1.0) -> jax.Array:
    """N(0, σ²) with σ = gain·√(2 / (fan in + fan out))."""
    return init_normal(key, like, 0.0, gain * math.sqrt(2.0 / sum(init_fans(like))))


def init_kaiming_std(like: Any, a: float, mode: str, nonlinearity: str) -> float:
    """Standard deviation gain / √fan of He initialisation."""
    fan = init_fans(like)[0 if mode == "fan_in" else 1]
    return init_gain(nonlinearity, a) / math.sqrt(fan)


def init_kaiming_uniform(key: jax.Array, like: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> jax.Array:
    """U(-b, b) with b = √3·gain / √fan."""
    bound = math.sqrt(3.0) * init_kaiming_std(like, a, mode, nonlinearity)
    return init_uniform(key, like, -bound, bound)


def init_kaiming_normal(key: jax.Array, like: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> jax.Array:
    """N(0, σ²) with σ = gain / √fan."""
    return init_normal(key, like, 0.0, init_kaiming_std(like, a, mode, nonlinearity))


def init_orthogonal(key: jax.Array, like: Any, gain: float = 1) -> jax.Array:
    """A (semi-)orthogonal matrix of shape (out, in·…)."""
    last = getattr(like, "features_last", False)
    rows = like.shape[-1] if last else like.shape[0]
    matrix = gain * jax.nn.initializers.orthogonal(column_axis=0)(key, (rows, like.size // rows), like.dtype)
    return matrix.T.reshape(like.shape) if last else matrix.reshape(like.shape)


def init_eye(like: Any) -> jax.Array:
    """The identity matrix."""
    return jnp.eye(like.shape[0], like.shape[1], dtype=like.dtype)


def init_constant(key: jax.Array, like: Any, val: float) -> jax.Array:
    """`val` everywhere."""
    return jnp.full_like(like, val)


def init_zeros(key: jax.Array, like: Any) -> jax.Array:
    """Zeros."""
    return jnp.zeros_like(like)


def init_ones(key: jax.Array, like: Any) -> jax.Array:
    """Ones."""
    return jnp.ones_like(like)
