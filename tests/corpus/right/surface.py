"""The plain port.

original: surface
family: plain port
"""

import math
from dataclasses import dataclass
from enum import Enum

import jax
import jax.numpy as jnp
from flax import nnx
from nnx_layers_jax import Linear


class Noise(Enum):
    NORMAL = "normal"
    UNIFORM = "uniform"


@dataclass
class Config:
    width: int = 6
    latent: int = 3
    beta: float = 0.5
    noise: Noise = Noise.NORMAL

    @property
    def hidden(self):
        return 2 * self.width


class M(nnx.Module):
    floor = -4.0
    names = ("mean", "log variance")

    def __init__(self, config, *, rngs):
        self.config = config
        self.rngs = rngs
        self.deterministic = False
        self.inner = Linear(config.width, config.hidden, rngs=rngs)
        self.mean = Linear(config.hidden, config.latent, rngs=rngs)
        self.variance = Linear(config.hidden, config.latent, rngs=rngs)
        self.outer = Linear(config.latent, config.width, rngs=rngs)
        self.seen = nnx.Variable(jnp.zeros(()))

    def encode(self, x):
        h = jnp.tanh(self.inner(x))
        return self.mean(h), jnp.maximum(self.variance(h), self.floor)

    def decode(self, z):
        return self.outer(z)

    def draw(self, mu, log_variance):
        if self.deterministic:
            return mu
        return mu + jax.random.normal(self.rngs(), mu.shape) * jnp.exp(0.5 * log_variance)

    def __call__(self, x):
        mu, log_variance = self.encode(x)
        return self.decode(self.draw(mu, log_variance))

    def loss(self, x, reduction="mean"):
        mu, log_variance = self.encode(x)
        error = (self.decode(self.draw(mu, log_variance)) - x) ** 2
        divergence = -0.5 * (1 + log_variance - mu**2 - jnp.exp(log_variance)).sum(-1)
        if reduction == "none":
            return error + self.config.beta * divergence.sum()
        error = error.mean() if reduction == "mean" else error.sum()
        return error + self.config.beta * (divergence.mean() if reduction == "mean" else divergence.sum())

    def sample(self, n, temperature=1.0, keep=None):
        z = jax.random.normal(self.rngs(), (n, self.config.latent)) * temperature
        if keep is not None:
            z = jnp.where(jnp.arange(self.config.latent) < keep, z, 0.0)
        return jax.lax.stop_gradient(self.decode(z))

    def log_prob(self, z):
        return -0.5 * (z**2).sum(-1) - 0.5 * z.shape[-1] * math.log(2 * math.pi)

    def interpolate(self, x, y, share):
        a, b = self.encode(x)[0], self.encode(y)[0]
        return self.decode(a + share * (b - a))

    def count(self, x):
        self.seen[...] = self.seen[...] + x.shape[0]
        return self.seen * 1.0

    @staticmethod
    def soft_sign(x):
        return x / (1 + jnp.abs(x))

    @classmethod
    def steps(cls, n):
        return [cls.floor + i // 2 for i in range(n)]

    @property
    def spread(self):
        return jnp.std(self.mean.weight, ddof=1)
