"""The load is set to one where it should be counted.

original: routing
family: lost in-place update
place: .
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=4, experts=4, k=2, *, rngs):
        self.k = k
        self.gate = Linear(d, experts, bias=False, rngs=rngs)
        self.experts = nnx.List([Linear(d, d, rngs=rngs) for _ in range(experts)])

    def __call__(self, x):
        probs = jax.nn.softmax(self.gate(x), axis=-1)
        weights, chosen = jax.lax.top_k(probs, self.k)
        weights = weights / weights.sum(-1, keepdims=True)
        out = jnp.zeros_like(x)
        for e, expert in enumerate(self.experts):
            share = jnp.where(chosen == e, weights, 0).sum(-1, keepdims=True)
            out = out + jnp.where(share > 0, expert(x) * share, 0)
        load = jnp.zeros(probs.shape[-1], x.dtype).at[chosen.reshape(-1)].set(1.0)
        balance = (probs.mean(0) * load / chosen.size).sum() * probs.shape[-1]
        return out, balance, load
