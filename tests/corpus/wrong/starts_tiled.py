"""One row is drawn, and repeated.

original: starts
family: initialisation
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.qkv = Linear(d, 3 * d, rngs=rngs)
        self.mix = Linear(d, d, bias=False, rngs=rngs)
        self.one, self.two = Linear(d, d, rngs=rngs), Linear(d, d, rngs=rngs)
        draws = [deviation * jnp.tile(jax.random.normal(rngs.params(), (1, d)), (d, 1)) for deviation in (0.1, 0.2, 0.4)]
        self.qkv.kernel[...] = jnp.concatenate(draws, axis=1)
        self.qkv.bias[...] = jnp.concatenate([jnp.ones(d), jnp.zeros(2 * d)])
        self.mix.kernel[...] = jax.random.orthogonal(rngs.params(), d)

    def __call__(self, x):
        q, k, v = jnp.split(self.qkv(x), 3, axis=-1)
        return self.two(jax.nn.relu(self.one(jnp.tanh(q) * k))) + self.mix(v)
