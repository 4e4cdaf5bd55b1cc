"""An NNX module whose layers are made by `nnx.vmap` and run by `nnx.scan`.

original: stacked_tower
family: other library
port: kind = "nnx"
port: initialisation = false
port: [weights]
port: "embed.weight" = "embed.embedding"
port: "norm.weight" = "norm.scale"
port: "norm.bias" = "norm.bias"
port: "layers.0.up.weight" = { path = "layers.up.kernel", index = 0, transpose = [1, 0] }
port: "layers.0.down.weight" = { path = "layers.down.kernel", index = 0, transpose = [1, 0] }
port: "layers.0.up.bias" = { path = "layers.up.bias", index = 0 }
port: "layers.1.up.weight" = { path = "layers.up.kernel", index = 1, transpose = [1, 0] }
port: "layers.1.down.weight" = { path = "layers.down.kernel", index = 1, transpose = [1, 0] }
port: "layers.1.up.bias" = { path = "layers.up.bias", index = 1 }
port: "layers.2.up.weight" = { path = "layers.up.kernel", index = 2, transpose = [1, 0] }
port: "layers.2.down.weight" = { path = "layers.down.kernel", index = 2, transpose = [1, 0] }
port: "layers.2.up.bias" = { path = "layers.up.bias", index = 2 }
"""

import jax.numpy as jnp
from flax import nnx


class Layer(nnx.Module):
    def __init__(self, width, rate, rngs):
        self.up = nnx.Linear(width, 2 * width, rngs=rngs)
        self.down = nnx.Linear(2 * width, width, use_bias=False, rngs=rngs)
        self.drop = nnx.Dropout(rate, rngs=rngs)

    def __call__(self, x):
        return x + self.drop(self.down(jnp.tanh(self.up(x))))


class M(nnx.Module):
    def __init__(self, words, width, depth=3, rate=0.2, *, rngs):
        @nnx.split_rngs(splits=depth)
        @nnx.vmap(in_axes=(0,), out_axes=0)
        def stacked(rngs):
            return Layer(width, rate, rngs)

        self.layers = stacked(rngs)
        self.embed = nnx.Embed(words, width, rngs=rngs)
        self.norm = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.drop = nnx.Dropout(rate, rngs=rngs)

    def encode(self, ids):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def run(x, layer):
            return layer(x)

        return self.norm(run(self.drop(self.embed(ids)), self.layers))

    def __call__(self, ids):
        return self.embed.attend(self.encode(ids))
