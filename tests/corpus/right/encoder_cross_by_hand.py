"""The second attention written out.

original: encoder
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import MultiheadAttention, TransformerEncoderLayer, linear


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.layer = TransformerEncoderLayer(d, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, rngs=rngs)
        self.cross = MultiheadAttention(d, 2, batch_first=True, rngs=rngs)

    def __call__(self, x, padded):
        h = self.layer(x, src_key_padding_mask=padded)
        wq, wk, wv = jnp.split(self.cross.in_proj_weight[...], 3)
        bq, bk, bv = jnp.split(self.cross.in_proj_bias[...], 3)
        q, k, v = (linear(t, w, b).reshape(*t.shape[:2], 2, -1) for t, w, b in ((h, wq, bq), (x, wk, bk), (x, wv, bv)))
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
        p = jax.nn.softmax(jnp.where(padded[:, None, None], -jnp.inf, scores), axis=-1)
        return self.cross.out_proj(jnp.einsum("bhts,bshd->bthd", p, v).reshape(h.shape)), p.mean(1)
