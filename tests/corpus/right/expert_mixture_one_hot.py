"""The gates are sums of one-hot rows, and the experts are mapped.

original: expert_mixture
family: other but equal formulas
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
        self.down = nnx.Param(0.1 * jax.random.normal(rngs.params(), (experts, 2 * width, width)))
        self.up = nnx.Param(0.1 * jax.random.normal(rngs.params(), (experts, width, 2 * width)))
        self.router = Linear(width, experts, bias=False, rngs=rngs)
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        logits = self.router(x)
        if self.noise > 0 and not self.deterministic:
            logits += self.noise * jax.random.normal(self.rngs(), logits.shape, logits.dtype)
        weights, chosen = jax.lax.top_k(jax.nn.softmax(logits.astype(jnp.float32)), self.k)
        weights = weights / weights.sum(-1, keepdims=True) if self.normalise else weights
        gates = jnp.sum(jax.nn.one_hot(chosen, logits.shape[-1], dtype=weights.dtype) * weights[..., None], axis=-2)

        def expert(up, down):
            return jax.nn.gelu(x @ up, approximate=False) @ down

        rows = jax.vmap(expert)(self.up[...], self.down[...])
        return jnp.einsum("etbd,tbe->tbd", rows, gates.astype(x.dtype))
