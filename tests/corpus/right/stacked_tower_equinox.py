"""A module of Equinox with stacked layers, which are scanned; its method is called on a batch as well.

original: stacked_tower
family: other library
port: kind = "equinox"
port: init = "11, 6"
port: initialisation = false
port: [weights]
port: "embed.weight" = "table"
port: "norm.weight" = "norm.weight"
port: "norm.bias" = "norm.bias"
port: "layers.0.up.weight" = { path = "layers.up.weight", index = 0 }
port: "layers.0.down.weight" = { path = "layers.down.weight", index = 0 }
port: "layers.0.up.bias" = { path = "layers.up.bias", index = 0 }
port: "layers.1.up.weight" = { path = "layers.up.weight", index = 1 }
port: "layers.1.down.weight" = { path = "layers.down.weight", index = 1 }
port: "layers.1.up.bias" = { path = "layers.up.bias", index = 1 }
port: "layers.2.up.weight" = { path = "layers.up.weight", index = 2 }
port: "layers.2.down.weight" = { path = "layers.down.weight", index = 2 }
port: "layers.2.up.bias" = { path = "layers.up.bias", index = 2 }
"""

import equinox as eqx
import jax
import jax.numpy as jnp


class Layer(eqx.Module):
    up: eqx.nn.Linear
    down: eqx.nn.Linear
    drop: eqx.nn.Dropout

    def __init__(self, width, rate, key):
        first, second = jax.random.split(key)
        self.up = eqx.nn.Linear(width, 2 * width, key=first)
        self.down = eqx.nn.Linear(2 * width, width, use_bias=False, key=second)
        self.drop = eqx.nn.Dropout(rate)

    def __call__(self, x, key):
        h = jnp.tanh(x @ self.up.weight.T + self.up.bias) @ self.down.weight.T
        return x + self.drop(h, key=key)


class M(eqx.Module):
    table: jax.Array
    layers: Layer
    norm: eqx.nn.LayerNorm
    drop: eqx.nn.Dropout
    depth: int = eqx.field(static=True)

    def __init__(self, words, width, depth=3, rate=0.2, *, key):
        first, second = jax.random.split(key)
        self.layers = eqx.filter_vmap(lambda key: Layer(width, rate, key))(jax.random.split(first, depth))
        self.table = jax.random.normal(second, (words, width))
        self.norm = eqx.nn.LayerNorm(width, eps=1e-5)
        self.drop = eqx.nn.Dropout(rate)
        self.depth = depth

    def encode(self, ids, key=None):
        keys = [None] * (self.depth + 1) if key is None else jax.random.split(key, self.depth + 1)
        x = self.drop(self.table[ids], key=keys[0])
        arrays, rest = eqx.partition(self.layers, eqx.is_array)
        for number in range(self.depth):
            layer = eqx.combine(jax.tree.map(lambda value: value[number], arrays), rest)
            x = layer(x, keys[number + 1])
        return jax.vmap(jax.vmap(self.norm))(x)

    def __call__(self, ids, key=None):
        return self.encode(ids, key) @ self.table.T
