"""Attention with relative positions: a table of 2T - 1 distances beside T tokens, shifted so that each query has its own.

init: 8, 2
call: torch.randn(2, 5, 8), torch.randn(2, 9, 8)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        assert d % heads == 0, f"{heads} heads do not divide {d}"
        self.heads, self.width = heads, d // heads
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.place = nn.Linear(d, d, bias=False)
        self.bias = nn.Parameter(torch.randn(heads, self.width))

    def split(self, x):
        return x.view(x.size(0), -1, self.heads, self.width).transpose(1, 2)

    def shift(self, scores):
        batch, heads, length, places = scores.size()
        padded = torch.cat([scores.new_zeros(batch, heads, length, 1), scores], dim=-1)
        padded = padded.view(batch, heads, places + 1, length)
        return padded[:, :, 1:].view_as(scores)[..., : places // 2 + 1]

    def forward(self, x, distances):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        places = self.split(self.place(distances))
        content = q @ k.transpose(-1, -2)
        scores = content + self.shift((q + self.bias[:, None]) @ places.transpose(-1, -2))
        y = torch.softmax(scores / self.width**0.5, dim=-1) @ v
        return y.transpose(1, 2).reshape(x.shape)
