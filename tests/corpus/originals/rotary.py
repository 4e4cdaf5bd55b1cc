"""Rotary embedding of queries and keys with a cached table, ALiBi slopes, sinusoidal positions.

call: torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)
method: rotate_half(torch.randn(2, 4, 6, 8))
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=8, heads=4, base=10000.0):
        super().__init__()
        inv = 1.0 / (base ** (torch.arange(0, d, 2).float() / d))
        self.register_buffer("inv_freq", inv, persistent=False)
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads))

    def rotate_half(self, x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((-b, a), dim=-1)

    def forward(self, q, k):
        t = torch.arange(q.size(2), dtype=self.inv_freq.dtype)
        freqs = torch.outer(t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos(), emb.sin()
        q = q * cos + self.rotate_half(q) * sin
        k = k * cos + self.rotate_half(k) * sin
        distance = t[None, :] - t[:, None]
        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5 + self.slopes[:, None, None] * distance
        table = torch.zeros(q.size(2), 8, dtype=q.dtype)
        table[:, 0::2] = freqs.sin()
        table[:, 1::2] = freqs.cos()
        return scores, table
