"""Attention over keys with an optional mask: booleans or integers choose keys, floats are added; queries may come from a cache.

init: 16, heads=2
call: torch.randn(3, 5, 16), torch.rand(3, 5) > 0.3
call: torch.randn(3, 5, 16), torch.randn(3, 5)
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask=None):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            if mask.is_floating_point():
                scores = scores + mask[:, None, None, :]
            else:
                scores = scores.masked_fill(mask[:, None, None, :] == 0, torch.finfo(scores.dtype).min)
        weights = F.softmax(scores.float(), dim=-1).type_as(q)
        y = self.out((weights @ v).transpose(1, 2).reshape(b, n, c))
        if mask is not None and not mask.is_floating_point():
            y = y * mask[:, :, None].to(y.dtype)
        return y
