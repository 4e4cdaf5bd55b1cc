"""The backward pass draws the masks of the layers in reverse.

original: blocks
family: wrong custom_vjp
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


def layer_of(x, each):
    key, weight, bias = each
    h = jnp.tanh(x @ weight.T + bias)
    return h, jnp.where(jax.random.bernoulli(key, 0.7, h.shape), 1 / 0.7, 0.0)


def forward(keys, weights, biases, x):
    def step(x, each):
        h, mask = layer_of(x, each)
        return x + h * mask, x

    out, inputs = jax.lax.scan(step, x, (keys, weights, biases))
    return out, (keys, weights, biases, inputs)


def backward(kept, g):
    def step(g, each):
        key, weight, bias, x = each
        h, mask = layer_of(x, (key, weight, bias))
        inner = g * mask * (1 - h * h)
        return g + inner @ weight, (inner.T @ x, inner.sum(0))

    g, (of_weights, of_biases) = jax.lax.scan(step, g, (kept[0][::-1], *kept[1:]), reverse=True)
    return None, of_weights, of_biases, g


@jax.custom_vjp
def blocks(keys, weights, biases, x):
    return forward(keys, weights, biases, x)[0]


blocks.defvjp(forward, backward)


class M(nnx.Module):
    def __init__(self, *, rngs):
        self.layers = nnx.List([Linear(6, 6, rngs=rngs) for _ in range(3)])
        self.rngs = rngs
        self.deterministic = False

    def __call__(self, x):
        weights = jnp.stack([layer.weight[...] for layer in self.layers])
        biases = jnp.stack([layer.bias[...] for layer in self.layers])
        if not self.deterministic:
            return blocks(jax.random.split(self.rngs(), len(self.layers)), weights, biases, x)
        for weight, bias in zip(weights, biases):
            x = x + jnp.tanh(x @ weight.T + bias)
        return x
