"""A tower of gated blocks whose form is in the hands of its constructor: heads, depth, eps, a dropout rate, flags.

init: 12, heads=3, depth=2
call: torch.randn(4, 5, 12)
"""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads, eps, rate, bias, gated):
        super().__init__()
        self.heads = heads
        self.gated = gated
        self.norm = nn.LayerNorm(width, eps=eps)
        self.mix = nn.Linear(width, 2 * width if gated else width, bias=bias)
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        batch, length, width = x.shape
        y = self.mix(self.norm(x))
        if self.gated:
            y, gate = y.chunk(2, dim=-1)
            y = y * torch.sigmoid(gate)
        y = y.view(batch, length, self.heads, width // self.heads)
        y = F.softmax(y, dim=2).reshape(batch, length, width)
        return x + self.drop(y)


class M(nn.Module):
    def __init__(self, width, heads=1, depth=1, eps=1e-3, rate=0.1, bias=True, gated=True, scale=2.0):
        super().__init__()
        self.scale = scale
        self.blocks = nn.ModuleList([Block(width, heads, eps, rate, bias, gated) for _ in range(depth)])
        self.head = nn.Linear(width, width, bias=bias)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x) / self.scale
