"""A function of a tree of parameters.

original: upcast
family: other library
port: kind = "function"
port: params = "init"
port: [weights]
port: "norm.weight" = "norm/scale"
port: "norm.bias" = "norm/bias"
port: "proj.weight" = { path = "proj/kernel", transpose = [1, 0] }
port: "proj.bias" = "proj/bias"
"""

import jax
import jax.numpy as jnp

WIDTH = 16


def init(key):
    first, second = jax.random.split(key)
    bound = WIDTH**-0.5
    kernel = jax.random.uniform(first, (WIDTH, 2 * WIDTH), minval=-bound, maxval=bound)
    bias = jax.random.uniform(second, (2 * WIDTH,), minval=-bound, maxval=bound)
    return {"norm": {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}, "proj": {"kernel": kernel, "bias": bias}}


def norm(params, x, eps=1e-6):
    wide = x.astype(jnp.float32)
    wide = wide - jnp.mean(wide, axis=-1, keepdims=True)
    wide = wide * jax.lax.rsqrt(jnp.mean(jnp.square(wide), axis=-1, keepdims=True) + eps)
    return params["scale"] * wide.astype(x.dtype) + params["bias"]


def M(params, x):
    y = norm(params["norm"], x) @ params["proj"]["kernel"] + params["proj"]["bias"]
    value, gate = jnp.split(y, 2, axis=-1)
    return x + value * jax.nn.sigmoid(gate)
