"""The rotation as a complex product.

original: rotary
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx


def turn(x, angles):
    wide = jnp.promote_types(x.dtype, jnp.float32)  # there are no complex numbers of less
    a, b = jnp.split(x.astype(wide), 2, axis=-1)
    z = jax.lax.complex(a, b) * jnp.exp(1j * angles.astype(wide))
    return jnp.concatenate([z.real, z.imag], axis=-1).astype(jnp.result_type(x, angles))


class M(nnx.Module):
    def __init__(self, d=8, heads=4, base=10000.0, *, rngs):
        self.inv_freq = nnx.Cache(1.0 / (base ** (jnp.arange(0, d, 2).astype(jnp.float32) / d)))
        self.slopes = nnx.Variable(2.0 ** (-8.0 * jnp.arange(1, heads + 1) / heads))

    def rotate_half(self, x):
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate((-b, a), axis=-1)

    def __call__(self, q, k):
        t = jnp.arange(q.shape[2], dtype=self.inv_freq.dtype)
        freqs = jnp.outer(t, self.inv_freq[...])
        emb = jnp.concatenate((freqs, freqs), axis=-1)
        cos, sin = jnp.cos(emb), jnp.sin(emb)
        q, k = turn(q, freqs), turn(k, freqs)
        distance = t[None, :] - t[:, None]
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5 + self.slopes[...][:, None, None] * distance
        table = jnp.stack([jnp.sin(freqs), jnp.cos(freqs)], axis=-1).reshape(q.shape[2], 8)
        return scores, table
