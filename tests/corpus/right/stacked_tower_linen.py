"""A module of Linen with scanned layers, whose dropout is drawn in another order, and whose embedding is the head's too.

original: stacked_tower
family: other library
port: kind = "linen"
port: initialisation = false
port: [weights]
port: "embed.weight" = "params/table"
port: "norm.weight" = "params/norm/scale"
port: "norm.bias" = "params/norm/bias"
port: "layers.0.up.weight" = { path = "params/layers/up/kernel", index = 0, transpose = [1, 0] }
port: "layers.0.down.weight" = { path = "params/layers/down/kernel", index = 0, transpose = [1, 0] }
port: "layers.0.up.bias" = { path = "params/layers/up/bias", index = 0 }
port: "layers.1.up.weight" = { path = "params/layers/up/kernel", index = 1, transpose = [1, 0] }
port: "layers.1.down.weight" = { path = "params/layers/down/kernel", index = 1, transpose = [1, 0] }
port: "layers.1.up.bias" = { path = "params/layers/up/bias", index = 1 }
port: "layers.2.up.weight" = { path = "params/layers/up/kernel", index = 2, transpose = [1, 0] }
port: "layers.2.down.weight" = { path = "params/layers/down/kernel", index = 2, transpose = [1, 0] }
port: "layers.2.up.bias" = { path = "params/layers/up/bias", index = 2 }
"""

import flax.linen as nn
import jax
import jax.numpy as jnp


class Layer(nn.Module):
    width: int
    rate: float

    @nn.compact
    def __call__(self, x, deterministic):
        h = jnp.tanh(nn.Dense(2 * self.width, name="up")(x))
        h = nn.Dense(self.width, use_bias=False, name="down")(h)
        return x + nn.Dropout(self.rate)(h, deterministic=deterministic), None


class M(nn.Module):
    words: int
    width: int
    depth: int = 3
    rate: float = 0.2

    def setup(self):
        scanned = nn.scan(
            Layer, variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, in_axes=nn.broadcast, length=self.depth
        )
        self.layers = scanned(self.width, self.rate)
        self.norm = nn.LayerNorm(epsilon=1e-5)
        self.drop = nn.Dropout(self.rate)
        self.table = self.param("table", nn.initializers.normal(1.0), (self.words, self.width))

    def encode(self, ids, deterministic=True):
        x = self.drop(jnp.take(self.table, ids, axis=0), deterministic=deterministic)
        x, _ = self.layers(x, deterministic)
        return self.norm(x)

    def __call__(self, ids, deterministic=True):
        return jnp.einsum("btc,wc->btw", self.encode(ids, deterministic), self.table)
