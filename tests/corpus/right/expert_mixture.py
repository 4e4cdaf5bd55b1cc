"""The plain port.

original: expert_mixture
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, experts=4, k=2, noise=0.1, normalise=True, *, rngs):
        self.k = k
        self.noise = noise
        self.normalise = normalise
        self.router = Linear(width, experts, bias=False, rngs=rngs)
        self.up = nnx.Param(jax.random.normal(rngs.params(), (experts, width, 2 * width)) * 0.1)
        self.down = nnx.Param(jax.random.normal(rngs.params(), (experts, 2 * width, width)) * 0.1)
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        logits = self.router(x)
        if not self.deterministic and self.noise > 0:
            logits = logits + self.noise * jax.random.normal(self.rngs(), logits.shape, logits.dtype)
        weights, chosen = jax.lax.top_k(jax.nn.softmax(logits.astype(jnp.float32), axis=-1), self.k)
        if self.normalise:
            weights = weights / jnp.sum(weights, axis=-1, keepdims=True)
        gates = jnp.zeros(logits.shape, weights.dtype)
        gates = jnp.put_along_axis(gates, chosen, weights, axis=-1, inplace=False).astype(x.dtype)
        h = jax.nn.gelu(jnp.einsum("btd,edh->bteh", x, self.up[...]), approximate=False)
        y = jnp.einsum("bteh,ehd->bted", h, self.down[...])
        return jnp.einsum("bted,bte->btd", y, gates)
