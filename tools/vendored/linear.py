"""Linear layers with PyTorch's semantics."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from migrate_agent.tools.vendored.numeric import cast_parameters, fan_in_bound, features_last_init, replace_value, uniform_init, value_of


def linear(input: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """`input @ weight.T + bias` for `weight` (out, in) or (in,).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.linear.html
    """
    output = input @ weight.T
    return output if bias is None else output + bias


class Linear(nnx.Linear):
    """Affine map of the last axis: (…, in) → (…, out).

    Its weight is `kernel` (in, out), or `tied` (out, in) once it shares a variable of that layout; the other one is None.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html
    """

    kernel: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None, *, rngs: nnx.Rngs
    ) -> None:
        bound = fan_in_bound(in_features)
        super().__init__(
            in_features,
            out_features,
            use_bias=bias,
            kernel_init=features_last_init(bound),
            bias_init=uniform_init(bound),
            kernel_metadata={"features_last": True},
            rngs=rngs,
        )
        self.tied: Any = nnx.data(None)
        cast_parameters(self, dtype)

    @property
    def weight(self) -> jax.Array:
        """The weight (out, in). Assigning an array sets it; assigning a variable shares that variable."""
        return self.kernel[...].T if self.kernel is not None else self.tied[...]

    @weight.setter
    def weight(self, value: Any) -> None:
        if isinstance(value, nnx.Variable):
            own = getattr(value, "features_last", False)
            self.kernel, self.tied = (value, None) if own else (None, value)
        elif self.kernel is not None:
            replace_value(self.kernel, value.T)
        else:
            replace_value(self.tied, value)

    def __call__(self, input: jax.Array) -> jax.Array:
        weight = self.kernel[...].T if self.tied is None else self.tied[...]
        return linear(input, weight, value_of(self.bias))


class Bilinear(nnx.Module):
    """`x1ᵀ A x2 + b` for each output feature, with `weight` (out, in1, in2).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Bilinear.html
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        init = uniform_init(fan_in_bound(in1_features))
        self.weight = nnx.Param(init(rngs.params(), (out_features, in1_features, in2_features)))
        self.bias = nnx.data(nnx.Param(init(rngs.params(), (out_features,))) if bias else None)
        cast_parameters(self, dtype)

    def __call__(self, input1: jax.Array, input2: jax.Array) -> jax.Array:
        return bilinear(input1, input2, self.weight[...], value_of(self.bias))


def bilinear(input1: jax.Array, input2: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """(…, in1), (…, in2), (out, in1, in2) → (…, out).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.bilinear.html
    """
    output = jnp.einsum("...i,oij,...j->...o", input1, weight, input2)
    return output if bias is None else output + bias


class Identity(nnx.Module):
    """Returns its input; takes and ignores any construction arguments.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Identity.html
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, input: jax.Array) -> jax.Array:
        return input


class Flatten(nnx.Module):
    """Flattens the axes `start_dim` … `end_dim` (inclusive) into one.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Flatten.html
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1, *, rngs: nnx.Rngs | None = None) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def __call__(self, input: jax.Array) -> jax.Array:
        start, end = self.start_dim % input.ndim, self.end_dim % input.ndim
        return input.reshape(*input.shape[:start], math.prod(input.shape[start : end + 1]), *input.shape[end + 1 :])


class Unflatten(nnx.Module):
    """Expands the axis `dim` to the shape `unflattened_size` (one entry may be -1).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Unflatten.html
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int], *, rngs: nnx.Rngs | None = None) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def __call__(self, input: jax.Array) -> jax.Array:
        dim = self.dim % input.ndim
        known = [size for size in self.unflattened_size if size != -1]
        sizes = [input.shape[dim] // max(1, math.prod(known)) if size == -1 else size for size in self.unflattened_size]
        return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1 :])
