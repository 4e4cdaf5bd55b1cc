"""A block that drops attention weights by its own mode, and its result by a layer of the same rate.

init: 8, 2
call: torch.randn(3, 5, 8)
"""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, rate):
        super().__init__()
        self.heads = heads
        self.rate = rate
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        weights = (q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5).softmax(-1)
        weights = F.dropout(weights, self.rate, self.training)
        return x + self.drop(self.proj((weights @ v).transpose(1, 2).reshape(b, t, c)))


class M(nn.Module):
    def __init__(self, width, heads, rate=0.2):
        super().__init__()
        self.block = Block(width, heads, rate)
        self.last = nn.Dropout(rate)

    def forward(self, x):
        return self.last(torch.tanh(self.block(x)))
