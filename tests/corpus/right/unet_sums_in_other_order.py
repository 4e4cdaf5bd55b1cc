"""Batch norm by one scale and shift, convolutions as products of patches: float32 rounds elsewhere.

original: unet
family: ill-conditioned
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import BatchNorm2d, Conv2d, ConvTranspose2d


class Convolution(Conv2d):
    def __call__(self, x):
        patches = jax.lax.conv_general_dilated_patches(x, (3, 3), (1, 1), [(1, 1)] * 2)
        kernel = jnp.transpose(self.kernel[...], (2, 0, 1, 3)).reshape(patches.shape[1], -1)
        return jnp.einsum("nphw,po->nohw", patches, kernel)


class Norm(BatchNorm2d):
    def __call__(self, x):
        if self.use_running_average:
            mean, var = self.mean[...], self.var[...]
        else:
            mean = x.mean((3, 2)).mean(0)
            var = jnp.square(x - mean[:, None, None]).mean((3, 2)).mean(0)
            n = x.size // x.shape[1]
            self.mean[...] += 0.1 * (mean - self.mean[...])
            self.var[...] += 0.1 * (var * n / (n - 1) - self.var[...])
            self.num_batches_tracked[...] += 1
        scale = self.scale[...] / jnp.sqrt(var + 1e-5)
        shift = self.bias[...] - mean * scale
        return x * scale[:, None, None] + shift[:, None, None]


class DoubleConv(nnx.Module):
    def __init__(self, n_in, n_out, *, rngs):
        self.conv1 = Convolution(n_in, n_out, 3, padding=1, bias=False, rngs=rngs)
        self.norm1 = Norm(n_out, rngs=rngs)
        self.conv2 = Convolution(n_out, n_out, 3, padding=1, bias=False, rngs=rngs)
        self.norm2 = Norm(n_out, rngs=rngs)

    def __call__(self, x):
        x = jax.nn.relu(self.norm1(self.conv1(x)))
        return jax.nn.relu(self.norm2(self.conv2(x)))


def halved(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).swapaxes(3, 4).reshape(n, c, h // 2, w // 2, 4).max(-1)


class M(nnx.Module):
    def __init__(self, n_in=3, n_out=2, width=8, depth=3, *, rngs):
        widths = [width * 2**level for level in range(depth)]
        self.first = DoubleConv(n_in, width, rngs=rngs)
        self.down = nnx.List([DoubleConv(w, 2 * w, rngs=rngs) for w in widths])
        self.up = nnx.List([ConvTranspose2d(2 * w, w, 2, stride=2, rngs=rngs) for w in widths])
        self.join = nnx.List([DoubleConv(2 * w, w, rngs=rngs) for w in widths])
        self.head = Conv2d(width, n_out, 1, rngs=rngs)

    def __call__(self, x):
        x, skips = self.first(x), []
        for block in self.down:
            skips.append(x)
            x = block(halved(x))
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(jnp.concatenate([skips.pop(), up(x)], 1))
        return self.head(x)
