"""The distributions of the helpers, made of the same numbers.

original: policy
family: plain port
"""

import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Categorical, Independent, Linear, Normal


class M(nnx.Module):
    def __init__(self, observations=5, actions=3, *, rngs):
        self.mean = Linear(observations, actions, rngs=rngs)
        self.choice = Linear(observations, actions, rngs=rngs)
        self.log_std = nnx.Param(jnp.zeros(actions))

    def __call__(self, x):
        steps = Independent(Normal(jnp.tanh(self.mean(x)), jnp.exp(self.log_std[...])), 1)
        return steps, Categorical(logits=self.choice(x))
