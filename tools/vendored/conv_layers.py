"""Convolutional layers with PyTorch's constructors; their parameters lie as in `nnx.Conv`."""

import math
from collections.abc import Sequence
from typing import Any

import jax
from flax import nnx

from migrate_agent.tools.vendored.conv import conv_padding, conv_transpose, convolution
from migrate_agent.tools.vendored.numeric import cast_parameters, fan_in_bound, features_last_init, to_tuple, uniform_init, value_of
from migrate_agent.tools.vendored.padding import pad


def channels_last(weight: jax.Array) -> jax.Array:
    """(out, in, …) → (…, in, out), the axis order of `nnx.Conv`; its own inverse is `channels_first`."""
    return weight.transpose(*range(2, weight.ndim), 1, 0)


def channels_first(kernel: jax.Array) -> jax.Array:
    """(…, in, out) → (out, in, …)."""
    return kernel.transpose(kernel.ndim - 1, kernel.ndim - 2, *range(kernel.ndim - 2))


def assign_kernel(layer: Any, value: Any) -> None:
    """Set a convolution's kernel from an array (out, in, …), or share the kernel of another convolution."""
    if not isinstance(value, nnx.Variable):
        layer.kernel[...] = channels_last(value)
    elif getattr(value, "features_last", False):
        layer.kernel = value
    else:
        layer.kernel = nnx.Param(channels_last(value[...]), features_last=True)


class ConvNd(nnx.Conv):
    """What the convolutions share: `kernel` (…, in/groups, out), read as `weight` (out, in/groups, …).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html
    """

    spatial = 0
    padding: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        sizes = to_tuple(kernel_size, self.spatial)
        bound = fan_in_bound(in_channels // groups * math.prod(sizes))
        super().__init__(
            in_channels,
            out_channels,
            sizes,
            feature_group_count=groups,
            use_bias=bias,
            kernel_init=features_last_init(bound),
            bias_init=uniform_init(bound),
            kernel_metadata={"features_last": True},
            rngs=rngs,
        )
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.stride, self.dilation = to_tuple(stride, self.spatial), to_tuple(dilation, self.spatial)
        self.padding = padding if isinstance(padding, str) else to_tuple(padding, self.spatial)
        cast_parameters(self, dtype)

    @property
    def weight(self) -> jax.Array:
        """The weight (out, in/groups, …). Assigning an array sets it; assigning a variable shares that variable."""
        return channels_first(self.kernel[...])

    @weight.setter
    def weight(self, value: Any) -> None:
        assign_kernel(self, value)

    def __call__(self, input: jax.Array) -> jax.Array:
        return self._conv_forward(input, channels_first(self.kernel[...]), self.bias)

    def _conv_forward(self, input: jax.Array, weight: jax.Array, bias: Any) -> jax.Array:
        padding = self.padding
        if self.padding_mode != "zeros":
            pairs = conv_padding(padding, self.kernel_size, self.dilation)
            input = pad(input, [amount for pair in reversed(pairs) for amount in pair], mode=self.padding_mode)
            padding = 0
        return convolution(input, weight, value_of(bias), self.stride, padding, self.dilation, self.groups)


class Conv1d(ConvNd):
    """(N, in, L) → (N, out, L'). https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv1d.html"""

    spatial = 1


class Conv2d(ConvNd):
    """(N, in, H, W) → (N, out, H', W'). https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html"""

    spatial = 2


class Conv3d(ConvNd):
    """(N, in, D, H, W) → (N, out, D', H', W'). https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv3d.html"""

    spatial = 3


class ConvTransposeNd(nnx.ConvTranspose):
    """What the transposed convolutions share: `kernel` (…, out/groups, in), read as `weight` (in, out/groups, …).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html
    """

    spatial = 0
    padding: Any
    kernel_size: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'only "zeros" padding mode is supported for {type(self).__name__}')
        sizes = to_tuple(kernel_size, self.spatial)
        init = uniform_init(fan_in_bound(out_channels // groups * math.prod(sizes)))
        super().__init__(in_channels, out_channels, sizes, use_bias=bias, bias_init=init, transpose_kernel=True, rngs=rngs)
        self.kernel_shape = (*sizes, out_channels // groups, in_channels)
        self.kernel = nnx.Param(init(rngs.params(), self.kernel_shape), features_last=True)
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.stride, self.dilation = to_tuple(stride, self.spatial), to_tuple(dilation, self.spatial)
        self.padding, self.output_padding = to_tuple(padding, self.spatial), to_tuple(output_padding, self.spatial)
        cast_parameters(self, dtype)

    @property
    def weight(self) -> jax.Array:
        """The weight (in, out/groups, …). Assigning an array sets it; assigning a variable shares that variable."""
        return channels_first(self.kernel[...])

    @weight.setter
    def weight(self, value: Any) -> None:
        assign_kernel(self, value)

    def __call__(self, input: jax.Array, output_size: Sequence[int] | None = None) -> jax.Array:
        extra = self.output_padding if output_size is None else self.padding_for(input, output_size)
        weight = channels_first(self.kernel[...])
        return conv_transpose(input, weight, value_of(self.bias), self.stride, self.padding, extra, self.groups, self.dilation)

    def padding_for(self, input: jax.Array, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output padding that makes the spatial size `output_size` (whose leading entries may be N and C)."""
        spatial = input.shape[-self.spatial :]
        smallest = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(spatial, self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        ]
        return tuple(int(want) - least for want, least in zip(output_size[-self.spatial :], smallest, strict=True))


class ConvTranspose1d(ConvTransposeNd):
    """(N, in, L) → (N, out, L'). https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose1d.html"""

    spatial = 1


class ConvTranspose2d(ConvTransposeNd):
    """(N, in, H, W) → (N, out, H', W'). https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html"""

    spatial = 2


class ConvTranspose3d(ConvTransposeNd):
    """(N, in, D, H, W) → (N, out, D', H', W'). https://docs.pytorch.org/docs/stable/generated/torch.nn.ConvTranspose3d.html"""

    spatial = 3
