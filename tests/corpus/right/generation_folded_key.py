"""A key that the number of the step is folded into, and `lax.fori_loop` around a module that does not change.

original: generation
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Embedding, Linear


class M(nnx.Module):
    def __init__(self, vocab=13, d=8, block_size=6, *, rngs: nnx.Rngs):
        self.block_size = block_size
        self.tokens, self.places = Embedding(vocab, d, rngs=rngs), Embedding(block_size, d, rngs=rngs)
        self.attn, self.proj = Linear(d, 3 * d, rngs=rngs), Linear(d, d, rngs=rngs)
        self.head = Linear(d, vocab, rngs=rngs)
        self.rngs = rngs

    def __call__(self, idx):
        x = self.tokens(idx) + self.places(jnp.arange(idx.shape[1]))
        q, k, v = jnp.split(self.attn(x), 3, axis=-1)
        scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return self.head(x + self.proj(jax.nn.softmax(scores, axis=-1) @ v))

    def generate(self, idx, steps, temperature=1.0, top_k=None):
        key, length = self.rngs(), idx.shape[1]
        idx = jnp.pad(idx, ((0, 0), (0, steps)))
        window = min(self.block_size, idx.shape[1])

        def step(idx, i):
            start = jnp.maximum(length + i - window, 0)
            context = jax.lax.dynamic_slice_in_dim(idx, start, window, axis=1)
            logits = self(context)[:, length + i - 1 - start] / temperature
            if top_k is not None:
                least = jax.lax.top_k(logits, min(top_k, logits.shape[-1]))[0][:, -1:]
                logits = jnp.where(logits < least, -jnp.inf, logits)
            token = jax.random.categorical(jax.random.fold_in(key, i), logits)
            return idx.at[:, length + i].set(token), None

        return jax.lax.scan(step, idx, jnp.arange(steps))[0]
