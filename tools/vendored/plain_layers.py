"""Flax's own layers for inputs whose channels are axis 1, as torch has them."""

import jax
import jax.numpy as jnp
from flax import nnx


class ChannelsFirstConv(nnx.Conv):
    """Flax's convolution, over (N, C, …) or (C, …)."""

    def __call__(self, inputs: jax.Array) -> jax.Array:
        channels = -1 - len(self.kernel_size)
        return jnp.moveaxis(super().__call__(jnp.moveaxis(inputs, channels, -1)), -1, channels)


class ChannelsFirstConvTranspose(nnx.ConvTranspose):
    """Flax's transposed convolution, over (N, C, …) or (C, …)."""

    def __call__(self, inputs: jax.Array) -> jax.Array:
        channels = -1 - len(self.kernel_size)
        return jnp.moveaxis(super().__call__(jnp.moveaxis(inputs, channels, -1)), -1, channels)


class ChannelsFirstGroupNorm(nnx.GroupNorm):
    """Flax's group normalisation, over (N, C, …), in the input's dtype."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *, rngs: nnx.Rngs) -> None:
        super().__init__(num_channels, num_groups, epsilon=eps, use_scale=affine, use_bias=affine, use_fast_variance=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.moveaxis(super().__call__(jnp.moveaxis(x, 1, -1)), -1, 1).astype(x.dtype)


class LastAxisLayerNorm(nnx.LayerNorm):
    """Flax's layer normalisation, with torch's first arguments for whoever is handed the class."""

    def __init__(self, size: int, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, *, rngs: nnx.Rngs) -> None:
        use_bias = elementwise_affine and bias
        super().__init__(size, epsilon=eps, use_scale=elementwise_affine, use_bias=use_bias, use_fast_variance=False, rngs=rngs)


class MachineEpsilonRMSNorm(nnx.RMSNorm):
    """Flax's normalisation by the root mean square, with the machine epsilon of the input's dtype, as torch has it by default."""

    def __call__(self, x: jax.Array) -> jax.Array:
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        normal = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + jnp.finfo(x.dtype).eps)
        return (normal if self.scale is None else normal * self.scale[...]).astype(x.dtype)


class SampleBatchNorm(nnx.BatchNorm):
    """Flax's batch normalisation over (N, C, …), whose running variance is that of samples (n - 1), and which counts its batches. The
    result has the input's dtype.

    `momentum` is the share of the new batch. https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, *, rngs: nnx.Rngs) -> None:
        super().__init__(
            num_features, momentum=1 - momentum, epsilon=eps, axis=1, use_scale=affine, use_bias=affine, use_fast_variance=False, rngs=rngs
        )
        self.num_batches_tracked = nnx.BatchStat(jnp.zeros((), int))

    def __call__(self, x: jax.Array) -> jax.Array:
        before, result = self.momentum * self.var[...], super().__call__(x).astype(x.dtype)
        if not self.use_running_average:
            count = x.size // x.shape[1]
            self.var[...] = before + (self.var[...] - before) * count / (count - 1)
            self.num_batches_tracked[...] += 1
        return result


def weight_of(layer: nnx.Module) -> nnx.Variable[jax.Array]:
    """The kernel, scale or table of one of Flax's layers: what torch calls its weight."""
    return next(getattr(layer, name) for name in ("kernel", "scale", "embedding") if hasattr(layer, name))
