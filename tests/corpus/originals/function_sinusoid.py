"""The sinusoidal embedding of time steps.

kind: function
call: torch.randint(0, 50, (4,)), 6
"""

import math

import torch


def f(steps, dim, max_period=10000):
    half = dim // 2
    frequencies = torch.exp(-math.log(max_period) * torch.arange(half, dtype=torch.float32) / half)
    angles = steps[:, None].float() * frequencies[None]
    embedding = torch.cat([angles.cos(), angles.sin()], dim=-1)
    if dim % 2:
        embedding = torch.cat([embedding, torch.zeros_like(embedding[:, :1])], dim=-1)
    return embedding
