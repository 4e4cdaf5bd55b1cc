"""As it is written.

original: far
family: plain port
"""

import math

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Embedding, Linear


class M(nnx.Module):
    def __init__(self, d=6, buckets=32, farthest=128, window=100, longest=300, *, rngs):
        self.bias = Embedding(buckets, 1, rngs=rngs)
        self.mix = Linear(d, d, rngs=rngs)
        self.buckets, self.farthest, self.window, self.longest = buckets, farthest, window, longest

    def bucket(self, apart):
        exact = self.buckets // 2
        share = jnp.log(jnp.maximum(apart, 1) / exact) / math.log(self.farthest / exact)
        far = jnp.minimum(exact + (share * (self.buckets - exact)).astype(int), self.buckets - 1)
        return jnp.where(apart < exact, apart, far)

    def __call__(self, x):
        x = x[:, -self.longest :]
        places = jnp.arange(x.shape[1])
        apart = places[:, None] - places[None]
        scores = x @ x.mT + self.bias(self.bucket(jnp.maximum(apart, 0)))[..., 0]
        scores = jnp.where((apart < 0) | (apart >= self.window), -1e9, scores)
        return self.mix(jax.nn.softmax(scores, -1) @ x)
