"""The plain port.

original: packed
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import GRU, Linear, pack_padded_sequence, pad_packed_sequence


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.rnn = GRU(4, 3, batch_first=True, bidirectional=True, rngs=rngs)
        self.score = Linear(6, 1, rngs=rngs)

    def __call__(self, x, lengths):
        packed, h = self.rnn(pack_padded_sequence(x, lengths, batch_first=True))
        out, _ = pad_packed_sequence(packed, batch_first=True)
        padding = jnp.arange(out.shape[1]) >= lengths[:, None]
        weights = jax.nn.softmax(jnp.where(padding, -1e9, self.score(out)[..., 0]), axis=1)
        return (weights[..., None] * out).sum(1), out, h
