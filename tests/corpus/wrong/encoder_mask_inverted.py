"""The padding mask is inverted.

original: encoder
family: masks
place: .
"""

from flax import nnx
from nnx_layers_jax import MultiheadAttention, TransformerEncoderLayer


class M(nnx.Module):
    def __init__(self, d=8, *, rngs):
        self.layer = TransformerEncoderLayer(d, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, rngs=rngs)
        self.cross = MultiheadAttention(d, 2, batch_first=True, rngs=rngs)

    def __call__(self, x, padded):
        h = self.layer(x, src_key_padding_mask=~padded)
        y, weights = self.cross(h, x, x, key_padding_mask=padded)
        return y, weights
