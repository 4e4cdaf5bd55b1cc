"""The experts' weights are stacked into one product.

original: routing
family: fused
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
        kernel = jnp.stack([expert.weight for expert in self.experts])
        bias = jnp.stack([expert.bias[...] for expert in self.experts])
        results = jnp.einsum("eoi,bi->beo", kernel, x) + bias
        out = (jnp.take_along_axis(results, chosen[..., None], axis=1) * weights[..., None]).sum(1)
        load = jnp.zeros(probs.shape[-1], x.dtype).at[chosen.reshape(-1)].add(1.0)
        balance = (probs.mean(0) * load / chosen.size).sum() * probs.shape[-1]
        return out, balance, load
