"""Group, instance, layer and RMS norm in a row over (N, C, L).

call: torch.randn(3, 6, 7) * 0.1
"""

import torch
from torch import nn


class RMS(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.group = nn.GroupNorm(3, 6)
        self.instance = nn.InstanceNorm1d(6, affine=True)
        self.layer = nn.LayerNorm([6, 7])
        self.rms = RMS(7)

    def forward(self, x):
        h = 0.1 * self.group(x) + x
        h = 0.1 * self.instance(h) + x
        h = 0.1 * self.layer(h) + x
        return self.rms(h)
