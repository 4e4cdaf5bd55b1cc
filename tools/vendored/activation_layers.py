"""Activation layers with PyTorch's constructors. They have no parameters but those of `PReLU`."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    prelu,
    relu6,
    rrelu,
    softmax,
    softmin,
    softplus,
    softshrink,
    tanhshrink,
    threshold,
)
from migrate_agent.tools.vendored.numeric import cast_parameters


class ReLU(nnx.Module):
    """max(x, 0). https://docs.pytorch.org/docs/stable/generated/torch.nn.ReLU.html"""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return jax.nn.relu(input)


class ReLU6(nnx.Module):
    """Clips to [0, 6]. https://docs.pytorch.org/docs/stable/generated/torch.nn.ReLU6.html"""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return relu6(input)


class GELU(nnx.Module):
    """x Φ(x), exact by default. https://docs.pytorch.org/docs/stable/generated/torch.nn.GELU.html"""

    def __init__(self, approximate: str = "none", *, rngs: nnx.Rngs | None = None) -> None:
        self.approximate = approximate

    def __call__(self, input: jax.Array) -> jax.Array:
        return gelu(input, self.approximate)


class SiLU(nnx.Module):
    """x sigmoid(x). https://docs.pytorch.org/docs/stable/generated/torch.nn.SiLU.html"""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return jax.nn.silu(input)


class Mish(nnx.Module):
    """x tanh(softplus(x)). https://docs.pytorch.org/docs/stable/generated/torch.nn.Mish.html"""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return mish(input)


class Sigmoid(nnx.Module):
    """1 / (1 + exp(-x)). https://docs.pytorch.org/docs/stable/generated/torch.nn.Sigmoid.html"""

    def __init__(self, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(input)


class Tanh(nnx.Module):
    """tanh(x). https://docs.pytorch.org/docs/stable/generated/torch.nn.Tanh.html"""

    def __init__(self, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return jnp.tanh(input)


class LogSigmoid(nnx.Module):
    """log(sigmoid(x)). https://docs.pytorch.org/docs/stable/generated/torch.nn.LogSigmoid.html"""

    def __init__(self, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return jax.nn.log_sigmoid(input)


class Softsign(nnx.Module):
    """x / (1 + |x|). https://docs.pytorch.org/docs/stable/generated/torch.nn.Softsign.html"""

    def __init__(self, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return jax.nn.soft_sign(input)


class Tanhshrink(nnx.Module):
    """x - tanh(x). https://docs.pytorch.org/docs/stable/generated/torch.nn.Tanhshrink.html"""

    def __init__(self, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return tanhshrink(input)


class SELU(nnx.Module):
    """Scaled exponential linear unit. https://docs.pytorch.org/docs/stable/generated/torch.nn.SELU.html"""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return jax.nn.selu(input)


class ELU(nnx.Module):
    """x where positive, else alpha (exp(x) - 1). https://docs.pytorch.org/docs/stable/generated/torch.nn.ELU.html"""

    def __init__(self, alpha: float = 1.0, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.alpha = alpha

    def __call__(self, input: jax.Array) -> jax.Array:
        return elu(input, self.alpha)


class CELU(nnx.Module):
    """x where positive, else alpha (exp(x / alpha) - 1). https://docs.pytorch.org/docs/stable/generated/torch.nn.CELU.html"""

    def __init__(self, alpha: float = 1.0, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.alpha = alpha

    def __call__(self, input: jax.Array) -> jax.Array:
        return celu(input, self.alpha)


class LeakyReLU(nnx.Module):
    """x where positive, else negative_slope x. https://docs.pytorch.org/docs/stable/generated/torch.nn.LeakyReLU.html"""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.negative_slope = negative_slope

    def __call__(self, input: jax.Array) -> jax.Array:
        return leaky_relu(input, self.negative_slope)


class Hardtanh(nnx.Module):
    """Clips to [min_val, max_val]. https://docs.pytorch.org/docs/stable/generated/torch.nn.Hardtanh.html"""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.min_val = min_val
        self.max_val = max_val

    def __call__(self, input: jax.Array) -> jax.Array:
        return hardtanh(input, self.min_val, self.max_val)


class Hardsigmoid(nnx.Module):
    """relu6(x + 3) / 6. https://docs.pytorch.org/docs/stable/generated/torch.nn.Hardsigmoid.html"""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return hardsigmoid(input)


class Hardswish(nnx.Module):
    """x relu6(x + 3) / 6. https://docs.pytorch.org/docs/stable/generated/torch.nn.Hardswish.html"""

    def __init__(self, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return hardswish(input)


class Hardshrink(nnx.Module):
    """Zero within [-lambd, lambd], else x. https://docs.pytorch.org/docs/stable/generated/torch.nn.Hardshrink.html"""

    def __init__(self, lambd: float = 0.5, *, rngs: nnx.Rngs | None = None) -> None:
        self.lambd = lambd

    def __call__(self, input: jax.Array) -> jax.Array:
        return hardshrink(input, self.lambd)


class Softshrink(nnx.Module):
    """Moves x towards zero by lambd. https://docs.pytorch.org/docs/stable/generated/torch.nn.Softshrink.html"""

    def __init__(self, lambd: float = 0.5, *, rngs: nnx.Rngs | None = None) -> None:
        self.lambd = lambd

    def __call__(self, input: jax.Array) -> jax.Array:
        return softshrink(input, self.lambd)


class Softplus(nnx.Module):
    """log(1 + exp(beta x)) / beta. https://docs.pytorch.org/docs/stable/generated/torch.nn.Softplus.html"""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0, *, rngs: nnx.Rngs | None = None) -> None:
        self.beta = beta
        self.threshold = threshold

    def __call__(self, input: jax.Array) -> jax.Array:
        return softplus(input, self.beta, self.threshold)


class Threshold(nnx.Module):
    """x where above the threshold, else value. https://docs.pytorch.org/docs/stable/generated/torch.nn.Threshold.html"""

    def __init__(self, threshold: float, value: float, inplace: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.threshold = threshold
        self.value = value

    def __call__(self, input: jax.Array) -> jax.Array:
        return threshold(input, self.threshold, self.value)


class GLU(nnx.Module):
    """The first half along dim, gated by the sigmoid of the second. https://docs.pytorch.org/docs/stable/generated/torch.nn.GLU.html"""

    def __init__(self, dim: int = -1, *, rngs: nnx.Rngs | None = None) -> None:
        self.dim = dim

    def __call__(self, input: jax.Array) -> jax.Array:
        return glu(input, self.dim)


class Softmax(nnx.Module):
    """exp(x) / Σ exp(x) over dim. https://docs.pytorch.org/docs/stable/generated/torch.nn.Softmax.html"""

    def __init__(self, dim: int | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        self.dim = dim

    def __call__(self, input: jax.Array) -> jax.Array:
        return softmax(input, self.dim)


class LogSoftmax(nnx.Module):
    """log(softmax(x)) over dim. https://docs.pytorch.org/docs/stable/generated/torch.nn.LogSoftmax.html"""

    def __init__(self, dim: int | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        self.dim = dim

    def __call__(self, input: jax.Array) -> jax.Array:
        return log_softmax(input, self.dim)


class Softmin(nnx.Module):
    """softmax(-x) over dim. https://docs.pytorch.org/docs/stable/generated/torch.nn.Softmin.html"""

    def __init__(self, dim: int | None = None, *, rngs: nnx.Rngs | None = None) -> None:
        self.dim = dim

    def __call__(self, input: jax.Array) -> jax.Array:
        return softmin(input, self.dim)


class Softmax2d(nnx.Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.Softmax2d.html"""

    def __init__(self, *, rngs: nnx.Rngs | None = None) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return softmax(input, -3)


class PReLU(nnx.Module):
    """x where positive, else `weight` x, with one weight or one for each channel.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.PReLU.html
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None, *, rngs: nnx.Rngs | None = None
    ) -> None:
        self.num_parameters = num_parameters
        self.init = init
        self.weight = nnx.Param(jnp.full((num_parameters,), init, jnp.float32))
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array) -> jax.Array:
        return prelu(input, self.weight[...])


class RReLU(nnx.Module):
    """Leaky ReLU with a random slope in training.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.RReLU.html
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False, *, rngs: nnx.Rngs) -> None:
        self.lower, self.upper = lower, upper
        self.deterministic = False
        self.rngs = rngs

    def __call__(self, input: jax.Array) -> jax.Array:
        return rrelu(input, self.lower, self.upper, not self.deterministic, rngs=self.rngs)
