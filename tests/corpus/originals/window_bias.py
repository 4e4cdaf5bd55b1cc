"""Attention inside a square window with a learned bias for each distance: side * side tokens, and (2 * side - 1) ** 2 distances.

init: 6, 4, 2
call: torch.randn(3, 16, 6)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d, side, heads):
        super().__init__()
        assert d % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.bias = nn.Parameter(torch.randn((2 * side - 1) ** 2, heads))
        places = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).flatten(1)
        apart = places[:, :, None] - places[:, None] + side - 1
        self.register_buffer("index", apart[0] * (2 * side - 1) + apart[1])

    def forward(self, x):
        batch, count, d = x.shape
        q, k, v = self.qkv(x).reshape(batch, count, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
        scores = scores + self.bias[self.index].permute(2, 0, 1)
        return (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(x.shape)
