"""Two layers of causal multi-head attention with an optional keyword mask, no dropout.

call: torch.randn(2, 6, 8), keep=torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
"""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        self.proj = nn.Linear(d, d)
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)))

    def forward(self, x, keep=None):
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = self.k(x).view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = self.v(x).view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = q @ k.transpose(-2, -1) / math.sqrt(C // self.heads)
        att = att.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        if keep is not None:
            att = att.masked_fill(~keep[:, None, None, :], -1e4)
        y = att.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class M(nn.Module):
    def __init__(self, d=8, heads=2):
        super().__init__()
        self.blocks = nn.ModuleList([Attention(d, heads) for _ in range(2)])

    def forward(self, x, keep=None):
        for block in self.blocks:
            x = x + block(x, keep)
        return x
