"""The patches are unfolded and projected by a product; the attention is jax's own.

original: patch_tower
family: other but equal formulas
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
        self.patch = patch
        self.head = Linear(width, classes, rngs=rngs)
        self.norm2 = LayerNorm(width, rngs=rngs)
        self.attend = Linear(width, 3 * width, rngs=rngs)
        self.norm1 = LayerNorm(width, rngs=rngs)
        self.drop = Dropout(rate, rngs=rngs)
        self.places = nnx.Param(jax.random.normal(rngs.params(), (1, 1 + (size // patch) ** 2, width)) * 0.02)
        self.token = nnx.Param(jnp.zeros((1, 1, width)))
        self.embed = Conv2d(3, width, patch, stride=patch, rngs=rngs)

    def features(self, images):
        b, c, h, w = images.shape
        p = self.patch
        rows = images[:, :, : h // p * p, : w // p * p].reshape(b, c, h // p, p, w // p, p)
        x = jnp.einsum("bcyixj,ijco->byxo", rows, self.embed.kernel[...]) + self.embed.bias[...]
        x = x.reshape(b, (h // p) * (w // p), x.shape[-1])
        x = jnp.concatenate([jnp.repeat(self.token[...], b, axis=0), x], axis=1)
        x = self.drop(x + self.places[...])
        q, k, v = (part[:, :, None] for part in jnp.split(self.attend(self.norm1(x)), 3, axis=-1))
        return self.norm2(x + jax.nn.dot_product_attention(q, k, v)[:, :, 0])

    def __call__(self, images):
        x = self.features(images)
        return self.head(x[:, 0] if self.pool == "token" else x[:, 1:].mean(1))
