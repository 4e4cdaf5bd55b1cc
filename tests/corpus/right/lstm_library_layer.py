"""The vendored layer.

original: lstm
family: plain port
"""

from flax import nnx
from nnx_layers_jax import LSTM, Linear


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.rnn = LSTM(4, 4, batch_first=True, rngs=rngs)
        self.head = Linear(4, 2, rngs=rngs)

    def __call__(self, x):
        out, (h, c) = self.rnn(x)
        return self.head(out), h, c
