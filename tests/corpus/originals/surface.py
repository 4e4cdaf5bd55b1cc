"""A small variational autoencoder whose users call more than `forward`: methods, properties, static and class methods.

init: Config()
call: torch.randn(4, 6)
method: encode(torch.randn(4, 6))
method: decode(torch.randn(4, 3))
method: sample(2)
method: sample(2, temperature=0.7, keep=2)
method: loss(torch.randn(4, 6))
method: log_prob(torch.randn(4, 3))
method: interpolate(torch.randn(4, 6), torch.randn(4, 6), 0.25)
method: soft_sign(torch.randn(4, 6))
method: steps(7)
method: spread()
method: count(torch.randn(4, 6))
"""

import math
from dataclasses import dataclass
from enum import Enum

import torch
from torch import nn
from torch.nn import functional as F


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


class M(nn.Module):
    floor = -4.0
    names = ("mean", "log variance")

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.inner = nn.Linear(config.width, config.hidden)
        self.mean = nn.Linear(config.hidden, config.latent)
        self.variance = nn.Linear(config.hidden, config.latent)
        self.outer = nn.Linear(config.latent, config.width)
        self.register_buffer("seen", torch.zeros(()))

    def encode(self, x):
        h = torch.tanh(self.inner(x))
        return self.mean(h), self.variance(h).clamp(min=self.floor)

    def decode(self, z):
        return self.outer(z)

    def draw(self, mu, log_variance):
        if not self.training:
            return mu
        return mu + torch.randn_like(mu) * torch.exp(0.5 * log_variance)

    def forward(self, x):
        mu, log_variance = self.encode(x)
        return self.decode(self.draw(mu, log_variance))

    def loss(self, x, reduction="mean"):
        mu, log_variance = self.encode(x)
        error = F.mse_loss(self.decode(self.draw(mu, log_variance)), x, reduction=reduction)
        divergence = -0.5 * (1 + log_variance - mu**2 - log_variance.exp()).sum(-1)
        return error + self.config.beta * (divergence.mean() if reduction == "mean" else divergence.sum())

    @torch.no_grad()
    def sample(self, n, temperature=1.0, keep=None):
        z = torch.randn(n, self.config.latent) * temperature
        if keep is not None:
            z = torch.where(torch.arange(self.config.latent) < keep, z, torch.zeros_like(z))
        return self.decode(z)

    def log_prob(self, z):
        return -0.5 * (z**2).sum(-1) - 0.5 * z.shape[-1] * math.log(2 * math.pi)

    def interpolate(self, x, y, share):
        a, b = self.encode(x)[0], self.encode(y)[0]
        return self.decode(torch.lerp(a, b, share))

    def count(self, x):
        self.seen += x.shape[0]
        return self.seen * 1.0

    @staticmethod
    def soft_sign(x):
        return x / (1 + x.abs())

    @classmethod
    def steps(cls, n):
        return [cls.floor + i // 2 for i in range(n)]

    @property
    def spread(self):
        return self.mean.weight.std()
