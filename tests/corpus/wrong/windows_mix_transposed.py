"""The square matrix is used transposed.

original: windows
family: wrong axis where sizes agree
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, d=4, w=4, *, rngs):
        self.w = w
        self.bias_table = nnx.Param(jax.random.normal(rngs.params(), ((2 * w - 1) ** 2,)))
        coords = jnp.stack(jnp.meshgrid(jnp.arange(w), jnp.arange(w), indexing="ij")).reshape(2, -1)
        relative = coords[:, :, None] - coords[:, None, :] + w - 1
        self.index = nnx.Variable(relative[0] * (2 * w - 1) + relative[1])
        self.mix = nnx.Param(jax.random.normal(rngs.params(), (d, d)))

    def __call__(self, x):
        B, H, W, C = x.shape
        w = self.w
        x = jnp.roll(x, (-w // 2, -w // 2), (1, 2))
        win = x.reshape(B, H // w, w, W // w, w, C).transpose(0, 1, 3, 2, 4, 5).reshape(-1, w * w, C)
        bias = self.bias_table[...][self.index[...].reshape(-1)].reshape(w * w, w * w)
        att = jax.nn.softmax(win @ win.swapaxes(1, 2) * C**-0.5 + bias, axis=-1)
        win = jnp.einsum("bij,bjc,dc->bid", att, win, self.mix[...])
        x = win.reshape(B, H // w, W // w, w, w, C).transpose(0, 1, 3, 2, 4, 5).reshape(B, H, W, C)
        return jnp.roll(x, (w // 2, w // 2), (1, 2))
