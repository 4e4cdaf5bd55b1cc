"""Pooling layers with PyTorch's constructors."""

from collections.abc import Sequence

import jax
from flax import nnx

from migrate_agent.tools.vendored.adaptive_pooling import adaptive_avg_pool, adaptive_max_pool
from migrate_agent.tools.vendored.pooling import avg_pool, lp_pool, max_pool, max_unpool, unpool_size


class MaxPoolNd(nnx.Module):
    """The maximum over windows, and its indices on request. https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html"""

    spatial = 0

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride or kernel_size, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def __call__(self, input: jax.Array) -> jax.Array | tuple[jax.Array, jax.Array]:
        geometry = self.kernel_size, self.stride, self.padding, self.dilation
        return max_pool(input, self.spatial, *geometry, self.ceil_mode, self.return_indices)


class AvgPoolNd(nnx.Module):
    """The mean over windows. https://docs.pytorch.org/docs/stable/generated/torch.nn.AvgPool2d.html"""

    spatial = 0

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride or kernel_size, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def __call__(self, input: jax.Array) -> jax.Array:
        geometry = self.kernel_size, self.stride, self.padding
        return avg_pool(input, self.spatial, *geometry, self.ceil_mode, self.count_include_pad, self.divisor_override)


class LPPoolNd(nnx.Module):
    """The power mean over windows. https://docs.pytorch.org/docs/stable/generated/torch.nn.LPPool2d.html"""

    spatial = 0

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def __call__(self, input: jax.Array) -> jax.Array:
        return lp_pool(input, self.spatial, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class MaxUnpoolNd(nnx.Module):
    """Puts maxima back in their places. https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool2d.html"""

    spatial = 0

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride or kernel_size, padding

    def __call__(self, input: jax.Array, indices: jax.Array, output_size: Sequence[int] | None = None) -> jax.Array:
        size = unpool_size(input, self.kernel_size, self.stride, self.padding, output_size, self.spatial)
        return max_unpool(input, indices, self.spatial, size)


class AdaptiveAvgPoolNd(nnx.Module):
    """The mean over as many windows as asked for. https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html"""

    spatial = 0

    def __init__(self, output_size: int | Sequence[int | None], *, rngs: nnx.Rngs | None = None) -> None:
        self.output_size = output_size

    def __call__(self, input: jax.Array) -> jax.Array:
        return adaptive_avg_pool(input, self.spatial, self.output_size)


class AdaptiveMaxPoolNd(nnx.Module):
    """The maximum over as many windows as asked for. https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool2d.html"""

    spatial = 0

    def __init__(self, output_size: int | Sequence[int | None], return_indices: bool = False, *, rngs: nnx.Rngs | None = None) -> None:
        self.output_size, self.return_indices = output_size, return_indices

    def __call__(self, input: jax.Array) -> jax.Array | tuple[jax.Array, jax.Array]:
        return adaptive_max_pool(input, self.spatial, self.output_size, self.return_indices)


class MaxPool1d(MaxPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool1d.html"""

    spatial = 1


class MaxPool2d(MaxPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html"""

    spatial = 2


class MaxPool3d(MaxPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool3d.html"""

    spatial = 3


class AvgPool1d(AvgPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AvgPool1d.html"""

    spatial = 1

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        *,
        rngs: nnx.Rngs | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(AvgPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AvgPool2d.html"""

    spatial = 2


class AvgPool3d(AvgPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AvgPool3d.html"""

    spatial = 3


class LPPool1d(LPPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.LPPool1d.html"""

    spatial = 1


class LPPool2d(LPPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.LPPool2d.html"""

    spatial = 2


class LPPool3d(LPPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.LPPool3d.html"""

    spatial = 3


class MaxUnpool1d(MaxUnpoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool1d.html"""

    spatial = 1


class MaxUnpool2d(MaxUnpoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool2d.html"""

    spatial = 2


class MaxUnpool3d(MaxUnpoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxUnpool3d.html"""

    spatial = 3


class AdaptiveAvgPool1d(AdaptiveAvgPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool1d.html"""

    spatial = 1


class AdaptiveAvgPool2d(AdaptiveAvgPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html"""

    spatial = 2


class AdaptiveAvgPool3d(AdaptiveAvgPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool3d.html"""

    spatial = 3


class AdaptiveMaxPool1d(AdaptiveMaxPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool1d.html"""

    spatial = 1


class AdaptiveMaxPool2d(AdaptiveMaxPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool2d.html"""

    spatial = 2


class AdaptiveMaxPool3d(AdaptiveMaxPoolNd):
    """https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool3d.html"""

    spatial = 3
