"""A function of a tree of parameters, with the layers stacked and scanned.

original: stacked_tower
family: other library
port: kind = "function"
port: params = "init"
port: initialisation = false
port: [weights]
port: "embed.weight" = "table"
port: "norm.weight" = "gain"
port: "norm.bias" = "shift"
port: "layers.0.up.weight" = { path = "layers/up", index = 0, transpose = [1, 0] }
port: "layers.0.down.weight" = { path = "layers/down", index = 0, transpose = [1, 0] }
port: "layers.0.up.bias" = { path = "layers/offset", index = 0 }
port: "layers.1.up.weight" = { path = "layers/up", index = 1, transpose = [1, 0] }
port: "layers.1.down.weight" = { path = "layers/down", index = 1, transpose = [1, 0] }
port: "layers.1.up.bias" = { path = "layers/offset", index = 1 }
port: "layers.2.up.weight" = { path = "layers/up", index = 2, transpose = [1, 0] }
port: "layers.2.down.weight" = { path = "layers/down", index = 2, transpose = [1, 0] }
port: "layers.2.up.bias" = { path = "layers/offset", index = 2 }
"""

import jax
import jax.numpy as jnp

WORDS, WIDTH, DEPTH, RATE = 11, 6, 3, 0.2


def init(key):
    keys = jax.random.split(key, 3)
    layers = {
        "up": jax.random.normal(keys[0], (DEPTH, WIDTH, 2 * WIDTH)),
        "down": jax.random.normal(keys[1], (DEPTH, 2 * WIDTH, WIDTH)),
        "offset": jnp.zeros((DEPTH, 2 * WIDTH)),
    }
    return {"layers": layers, "table": jax.random.normal(keys[2], (WORDS, WIDTH)), "gain": jnp.ones(WIDTH), "shift": jnp.zeros(WIDTH)}


def dropped(x, key, train):
    if not train:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - RATE, x.shape), x / (1 - RATE), 0.0)


def M(params, ids, train=False, key=None):
    keys = jax.random.split(jax.random.key(0) if key is None else key, DEPTH + 1)
    x = dropped(params["table"][ids], keys[-1], train)

    def step(x, row):
        layer, key = row
        return x + dropped(jnp.tanh(x @ layer["up"] + layer["offset"]) @ layer["down"], key, train), None

    x, _ = jax.lax.scan(step, x, (params["layers"], keys[:-1]))
    centred = x - x.mean(-1, keepdims=True)
    x = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
    return (x * params["gain"] + params["shift"]) @ params["table"].T
