"""The plain port.

original: patch_tower
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Conv2d, Dropout, LayerNorm, Linear


class M(nnx.Module):
    def __init__(self, width, patch=4, size=8, pool="token", rate=0.1, classes=5, *, rngs):
        if pool not in ("token", "mean"):
            raise ValueError(pool)
        self.pool = pool
        self.embed = Conv2d(3, width, patch, stride=patch, rngs=rngs)
        self.token = nnx.Param(jnp.zeros((1, 1, width)))
        self.places = nnx.Param(jax.random.normal(rngs.params(), (1, 1 + (size // patch) ** 2, width)) * 0.02)
        self.drop = Dropout(rate, rngs=rngs)
        self.norm1 = LayerNorm(width, rngs=rngs)
        self.attend = Linear(width, 3 * width, rngs=rngs)
        self.norm2 = LayerNorm(width, rngs=rngs)
        self.head = Linear(width, classes, rngs=rngs)

    def features(self, images):
        x = self.embed(images)
        x = jnp.swapaxes(x.reshape(*x.shape[:2], x.shape[2] * x.shape[3]), 1, 2)
        x = jnp.concatenate([jnp.broadcast_to(self.token[...], (len(x), 1, x.shape[-1])), x], axis=1)
        x = self.drop(x + self.places[...])
        q, k, v = jnp.split(self.attend(self.norm1(x)), 3, axis=-1)
        weights = jax.nn.softmax(q @ jnp.swapaxes(k, -2, -1) / jnp.sqrt(q.shape[-1]).astype(q.dtype), axis=-1)
        return self.norm2(x + weights @ v)

    def __call__(self, images):
        x = self.features(images)
        x = x[:, 0] if self.pool == "token" else jnp.mean(x[:, 1:], axis=1)
        return self.head(x)
