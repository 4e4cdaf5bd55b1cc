"""The choice among actions by logarithms of probabilities that sum to 1.

original: policy
family: other but equal formulas
"""

import jax
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
        return steps, Categorical(logits=jax.nn.log_softmax(self.choice(x), axis=-1))
