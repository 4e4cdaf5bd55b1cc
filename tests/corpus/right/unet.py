"""The plain port.

original: unet
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import BatchNorm2d, Conv2d, ConvTranspose2d, max_pool2d


class DoubleConv(nnx.Module):
    def __init__(self, n_in, n_out, *, rngs):
        self.conv1 = Conv2d(n_in, n_out, 3, padding=1, bias=False, rngs=rngs)
        self.norm1 = BatchNorm2d(n_out, rngs=rngs)
        self.conv2 = Conv2d(n_out, n_out, 3, padding=1, bias=False, rngs=rngs)
        self.norm2 = BatchNorm2d(n_out, rngs=rngs)

    def __call__(self, x):
        x = jax.nn.relu(self.norm1(self.conv1(x)))
        return jax.nn.relu(self.norm2(self.conv2(x)))


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
            x = block(max_pool2d(x, 2))
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(jnp.concatenate([skips.pop(), up(x)], 1))
        return self.head(x)
