"""A sampler of diffusion models: schedules by name, kinds of predictions, and options that most calls leave alone.

init: steps=12
call: torch.randn(2, 4), torch.randn(2, 4), 5
method: add_noise(torch.randn(2, 4), torch.randn(2, 4), torch.tensor([3, 7]))
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, steps=12, schedule="linear", prediction="noise", clip=True, low=1e-4, high=0.2):
        super().__init__()
        if schedule == "linear":
            betas = torch.linspace(low, high, steps)
        elif schedule == "scaled":
            betas = torch.linspace(low**0.5, high**0.5, steps) ** 2
        elif schedule == "sigmoid":
            betas = torch.sigmoid(torch.linspace(-6, 6, steps)) * (high - low) + low
        else:
            raise ValueError(f"unknown schedule {schedule}")
        self.prediction = prediction
        self.clip = clip
        self.register_buffer("alphas", torch.cumprod(1.0 - betas, dim=0))

    def add_noise(self, x, noise, t):
        a = self.alphas[t][:, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise

    def forward(self, output, x, t: int, eta: float = 0.0):
        a = self.alphas[t]
        before = self.alphas[t - 1] if t > 0 else torch.ones_like(a)
        if self.prediction == "noise":
            start = (x - (1 - a).sqrt() * output) / a.sqrt()
        elif self.prediction == "sample":
            start = output
        elif self.prediction == "velocity":
            start = a.sqrt() * x - (1 - a).sqrt() * output
        else:
            raise ValueError(f"unknown prediction {self.prediction}")
        if self.clip:
            start = start.clamp(-1.0, 1.0)
        noise = (x - a.sqrt() * start) / (1 - a).sqrt()
        spread = eta * ((1 - before) / (1 - a) * (1 - a / before)).sqrt()
        return before.sqrt() * start + (1 - before - spread**2).sqrt() * noise
