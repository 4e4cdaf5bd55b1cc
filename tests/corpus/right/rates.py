"""A rate of one drops everything; a target of zero has no logarithm.

original: rates
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class M(nnx.Module):
    def __init__(self, width, reduction, rate, smoothing, *, rngs: nnx.Rngs):
        self.down = Linear(width, width // reduction, bias=False, rngs=rngs)
        self.up = Linear(width // reduction, width, rngs=rngs)
        self.rate, self.smoothing = rate, smoothing
        self.rngs, self.deterministic = rngs, False

    def dropped(self, x):
        if self.deterministic or self.rate == 0:
            return x
        kept = jax.random.bernoulli(self.rngs(), 1 - self.rate, x.shape)
        return jnp.where(kept, x / max(1 - self.rate, 1e-38), 0)

    def __call__(self, x, labels):
        x = x * jax.nn.sigmoid(self.up(jax.nn.relu(self.down(x))))
        x = x + self.dropped(x)
        goal = jax.nn.one_hot(labels, x.shape[-1]) * (1 - self.smoothing) + self.smoothing / x.shape[-1]
        return (jax.scipy.special.xlogy(goal, goal) - goal * jax.nn.log_softmax(x)).sum() / len(x)
