"""The cosine schedule of noise.

kind: function
call: 12
"""

import torch


def f(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1)
    kept = torch.cos((x / timesteps + s) / (1 + s) * torch.pi * 0.5) ** 2
    kept = kept / kept[0]
    return torch.clip(1 - kept[1:] / kept[:-1], 0.0001, 0.9999)
