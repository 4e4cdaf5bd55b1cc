"""Normalisation layers with PyTorch's constructors; their parameters are named as in NNX (`scale`, `bias`, `mean`, `var`)."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from migrate_agent.tools.vendored.norm import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from migrate_agent.tools.vendored.numeric import cast_parameters, promote_half, to_tuple, value_of


def assign_scale(layer: Any, value: Any) -> None:
    """Set a normalisation's scale from an array, or share a variable."""
    if isinstance(value, nnx.Variable):
        layer.scale = value
    else:
        layer.scale[...] = value


class LayerNorm(nnx.LayerNorm):
    """Normalises over the last axes, of shape `normalized_shape`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        shape = to_tuple(normalized_shape, 1)
        use_bias = elementwise_affine and bias
        super().__init__(math.prod(shape), epsilon=eps, use_scale=elementwise_affine, use_bias=use_bias, rngs=rngs)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        for parameter in (self.scale, self.bias):
            if parameter is not None and len(shape) > 1:
                parameter.set_value(parameter[...].reshape(shape))
        cast_parameters(self, dtype)

    @property
    def weight(self) -> jax.Array | None:
        """The scale, of shape `normalized_shape`. Assigning an array sets it; assigning a variable shares that variable."""
        return value_of(self.scale)

    @weight.setter
    def weight(self, value: Any) -> None:
        assign_scale(self, value)

    def __call__(self, input: jax.Array) -> jax.Array:
        return layer_norm(input, self.normalized_shape, value_of(self.scale), value_of(self.bias), self.eps)


class RMSNorm(nnx.RMSNorm):
    """Divides by the root mean square over the last axes, of shape `normalized_shape`.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        shape = to_tuple(normalized_shape, 1)
        super().__init__(math.prod(shape), use_scale=elementwise_affine, rngs=rngs)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        if self.scale is not None and len(shape) > 1:
            self.scale.set_value(self.scale[...].reshape(shape))
        cast_parameters(self, dtype)

    @property
    def weight(self) -> jax.Array | None:
        """The scale, of shape `normalized_shape`. Assigning an array sets it; assigning a variable shares that variable."""
        return value_of(self.scale)

    @weight.setter
    def weight(self, value: Any) -> None:
        assign_scale(self, value)

    def __call__(self, x: jax.Array) -> jax.Array:
        return rms_norm(x, self.normalized_shape, value_of(self.scale), self.eps)


class GroupNorm(nnx.GroupNorm):
    """Normalises each of `num_groups` groups of channels of (N, C, …).

    https://docs.pytorch.org/docs/stable/generated/torch.nn.GroupNorm.html
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(num_channels, num_groups, epsilon=eps, use_scale=affine, use_bias=affine and bias, rngs=rngs)
        self.num_channels, self.eps, self.affine = num_channels, eps, affine
        cast_parameters(self, dtype)

    @property
    def weight(self) -> jax.Array | None:
        """The scale (C,). Assigning an array sets it; assigning a variable shares that variable."""
        return value_of(self.scale)

    @weight.setter
    def weight(self, value: Any) -> None:
        assign_scale(self, value)

    def __call__(self, input: jax.Array) -> jax.Array:
        return group_norm(input, self.num_groups, value_of(self.scale), value_of(self.bias), self.eps)


class RunningNorm(nnx.BatchNorm):
    """The parameters and running statistics that batch and instance normalisation share.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """

    mean: Any
    var: Any
    momentum: Any

    def __init__(self, num_features: int, eps: float, affine: bool, track_running_stats: bool, bias: bool, rngs: nnx.Rngs) -> None:
        super().__init__(num_features, epsilon=eps, use_scale=affine, use_bias=affine and bias, rngs=rngs)
        self.eps, self.affine, self.track_running_stats = eps, affine, track_running_stats
        self.num_batches_tracked: Any = nnx.data(nnx.BatchStat(jnp.zeros((), int)) if track_running_stats else None)
        if not track_running_stats:
            self.mean, self.var = nnx.data(None), nnx.data(None)

    @property
    def weight(self) -> jax.Array | None:
        """The scale (C,). Assigning an array sets it; assigning a variable shares that variable."""
        return value_of(self.scale)

    @weight.setter
    def weight(self, value: Any) -> None:
        assign_scale(self, value)

    @property
    def running_mean(self) -> jax.Array | None:
        """The running mean (C,), where it is tracked."""
        return value_of(self.mean)

    @running_mean.setter
    def running_mean(self, value: jax.Array) -> None:
        self.mean[...] = value

    @property
    def running_var(self) -> jax.Array | None:
        """The running unbiased variance (C,), where it is tracked."""
        return value_of(self.var)

    @running_var.setter
    def running_var(self, value: jax.Array) -> None:
        self.var[...] = value

    def track(self, mean: jax.Array, var: jax.Array, factor: float | jax.Array) -> None:
        """Move the running statistics by `factor` towards `mean` and `var` (C,)."""
        for running, new in ((self.mean, mean), (self.var, var)):
            old = running[...]
            running[...] = (old + factor * (lax.stop_gradient(new) - old)).astype(old.dtype)


class BatchNormNd(RunningNorm):
    """Normalises the channels (axis 1) of (N, C, …) by the statistics of the batch, or in eval mode by the running ones.

    `momentum` is the weight of the new batch; with `None` the running statistics are the average over all batches.
    https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """

    ndims: tuple[int, ...] = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(num_features, eps, affine, track_running_stats, bias, rngs)
        self.momentum = momentum
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array) -> jax.Array:
        if input.ndim not in self.ndims:
            raise ValueError(f"{type(self).__name__} takes inputs with {self.ndims} axes, not {input.ndim}")
        training = not self.use_running_average
        if training and self.mean is not None:
            self.update(promote_half(input))
        mean, var, scale, bias = map(value_of, (self.mean, self.var, self.scale, self.bias))
        return batch_norm(input, mean, var, scale, bias, training, eps=self.eps)

    def update(self, x: jax.Array) -> None:
        """Move the running statistics towards those of the batch `x` (N, C, …)."""
        axes = (0, *range(2, x.ndim))
        count = x.size // x.shape[1]
        if count == 1:
            raise ValueError(f"expected more than one value per channel when training, got input size {x.shape}")
        self.num_batches_tracked[...] += 1
        if count == 0:
            return
        factor = 1 / self.num_batches_tracked[...] if self.momentum is None else self.momentum
        self.track(x.mean(axes), x.var(axes, ddof=1), factor)


class BatchNorm1d(BatchNormNd):
    """Over (N, C) or (N, C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html"""

    ndims = (2, 3)


class BatchNorm2d(BatchNormNd):
    """Over (N, C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html"""

    ndims = (4,)


class BatchNorm3d(BatchNormNd):
    """Over (N, C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm3d.html"""

    ndims = (5,)


class SyncBatchNorm(BatchNormNd):
    """Over any (N, C, …): a program for several devices sees the whole batch, so that statistics are of all of it.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.SyncBatchNorm.html
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias, rngs=rngs)


class InstanceNormNd(RunningNorm):
    """Normalises each channel of each sample of (N, C, …) or (C, …); by the running statistics where these are tracked, in eval mode.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm2d.html
    """

    spatial = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
        rngs: nnx.Rngs,
    ) -> None:
        super().__init__(num_features, eps, affine, track_running_stats, bias, rngs)
        self.momentum = momentum
        cast_parameters(self, dtype)

    def __call__(self, input: jax.Array) -> jax.Array:
        if input.ndim == self.spatial + 1:
            return self(input[None])[0]
        own = not self.use_running_average or self.mean is None
        if not self.use_running_average and self.mean is not None:
            x, axes = promote_half(input), tuple(range(2, input.ndim))
            self.track(x.mean((0, *axes)), x.var(axes, ddof=1).mean(0), self.momentum or 0.0)
        mean, var, scale, bias = map(value_of, (self.mean, self.var, self.scale, self.bias))
        return instance_norm(input, mean, var, scale, bias, own, eps=self.eps)


class InstanceNorm1d(InstanceNormNd):
    """Over (N, C, L) or (C, L). https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm1d.html"""

    spatial = 1


class InstanceNorm2d(InstanceNormNd):
    """Over (N, C, H, W) or (C, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm2d.html"""

    spatial = 2


class InstanceNorm3d(InstanceNormNd):
    """Over (N, C, D, H, W) or (C, D, H, W). https://docs.pytorch.org/docs/stable/generated/torch.nn.InstanceNorm3d.html"""

    spatial = 3


class LocalResponseNorm(nnx.Module):
    """Divides by a power of the mean square over neighbouring channels.

    https://docs.pytorch.org/docs/stable/generated/torch.nn.LocalResponseNorm.html
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *, rngs: nnx.Rngs | None = None) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def __call__(self, input: jax.Array) -> jax.Array:
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)
