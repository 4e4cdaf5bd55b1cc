"""The usage is not updated.

original: quantise
family: stale buffer
place: .
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Embedding


class M(nnx.Module):
    def __init__(self, codes=8, d=4, beta=0.25, *, rngs):
        self.beta = beta
        self.codebook = Embedding(codes, d, rngs=rngs)
        self.usage = nnx.Variable(jnp.zeros(codes))
        self.deterministic = False

    def __call__(self, z):
        w = self.codebook.weight
        d = (z**2).sum(1, keepdims=True) - 2 * z @ w.T + (w**2).sum(1)
        index = d.argmin(1)
        q = self.codebook(index)
        loss = ((q - jax.lax.stop_gradient(z)) ** 2).mean() + self.beta * ((jax.lax.stop_gradient(q) - z) ** 2).mean()
        if not self.deterministic:
            counts = jax.nn.one_hot(index, w.shape[0], dtype=z.dtype).sum(0)
            del counts
        probs = jax.nn.one_hot(index, w.shape[0], dtype=z.dtype).mean(0)
        perplexity = jnp.exp(-(probs * jnp.log(probs + 1e-10)).sum())
        return z + jax.lax.stop_gradient(q - z), loss, index, perplexity
