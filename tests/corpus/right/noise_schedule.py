"""The plain port.

original: noise_schedule
family: plain port
"""

import jax
import jax.numpy as jnp
from flax import nnx


class M(nnx.Module):
    def __init__(self, steps=12, schedule="linear", prediction="noise", clip=True, low=1e-4, high=0.2, *, rngs):
        if schedule == "linear":
            betas = jnp.linspace(low, high, steps)
        elif schedule == "scaled":
            betas = jnp.linspace(low**0.5, high**0.5, steps) ** 2
        elif schedule == "sigmoid":
            betas = jax.nn.sigmoid(jnp.linspace(-6, 6, steps)) * (high - low) + low
        else:
            raise ValueError(f"unknown schedule {schedule}")
        self.prediction = prediction
        self.clip = clip
        self.alphas = nnx.Variable(jnp.cumprod(1.0 - betas))

    def add_noise(self, x, noise, t):
        a = self.alphas[...][t][:, None]
        return jnp.sqrt(a) * x + jnp.sqrt(1 - a) * noise

    def __call__(self, output, x, t: int, eta: float = 0.0):
        a = self.alphas[...][t]
        before = self.alphas[...][t - 1] if t > 0 else jnp.ones_like(a)
        if self.prediction == "noise":
            start = (x - jnp.sqrt(1 - a) * output) / jnp.sqrt(a)
        elif self.prediction == "sample":
            start = output
        elif self.prediction == "velocity":
            start = jnp.sqrt(a) * x - jnp.sqrt(1 - a) * output
        else:
            raise ValueError(f"unknown prediction {self.prediction}")
        if self.clip:
            start = jnp.clip(start, -1.0, 1.0)
        noise = (x - jnp.sqrt(a) * start) / jnp.sqrt(1 - a)
        spread = eta * jnp.sqrt((1 - before) / (1 - a) * (1 - a / before))
        return jnp.sqrt(before) * start + jnp.sqrt(1 - before - spread**2) * noise
