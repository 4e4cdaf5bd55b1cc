"""Schedules and predictions stand in tables of functions.

original: noise_schedule
family: other but equal formulas
"""

import jax
import jax.numpy as jnp
from flax import nnx

SCHEDULES = {
    "linear": jnp.linspace,
    "scaled": lambda low, high, steps: jnp.square(jnp.linspace(jnp.sqrt(low), jnp.sqrt(high), steps)),
    "sigmoid": lambda low, high, steps: low + (high - low) * jax.nn.sigmoid(jnp.linspace(-6.0, 6.0, steps)),
}
STARTS = {
    "noise": lambda output, x, signal, noise: (x - noise * output) / signal,
    "sample": lambda output, x, signal, noise: output,
    "velocity": lambda output, x, signal, noise: signal * x - noise * output,
}


class M(nnx.Module):
    def __init__(self, steps=12, schedule="linear", prediction="noise", clip=True, low=1e-4, high=0.2, *, rngs):
        if schedule not in SCHEDULES:
            raise ValueError(f"unknown schedule {schedule}")
        self.prediction = prediction
        self.clip = clip
        self.alphas = nnx.Variable(jnp.cumprod(1.0 - SCHEDULES[schedule](low, high, steps)))

    def add_noise(self, x, noise, t):
        a = jnp.take(self.alphas[...], t)[:, None]
        return jnp.sqrt(a) * x + jnp.sqrt(1 - a) * noise

    def __call__(self, output, x, t: int, eta: float = 0.0):
        if self.prediction not in STARTS:
            raise ValueError(f"unknown prediction {self.prediction}")
        a = self.alphas[...][t]
        before = self.alphas[...][t - 1] if t else jnp.ones_like(a)
        start = STARTS[self.prediction](output, x, jnp.sqrt(a), jnp.sqrt(1 - a))
        start = jnp.clip(start, -1.0, 1.0) if self.clip else start
        noise = (x - jnp.sqrt(a) * start) / jnp.sqrt(1 - a)
        variance = eta**2 * (1 - before) / (1 - a) * (1 - a / before)
        return jnp.sqrt(before) * start + jnp.sqrt(1 - before - variance) * noise
