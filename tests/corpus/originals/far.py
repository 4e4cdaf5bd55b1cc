"""Relative positions in buckets (exact for near ones, logarithmic for far ones), a window and a largest length that the example does not reach.

call: torch.randn(2, 6, 6)
"""

import math

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=6, buckets=32, farthest=128, window=100, longest=300):
        super().__init__()
        self.bias = nn.Embedding(buckets, 1)
        self.mix = nn.Linear(d, d)
        self.buckets, self.farthest, self.window, self.longest = buckets, farthest, window, longest

    def bucket(self, apart):
        exact = self.buckets // 2
        share = torch.log(apart.clamp(min=1).float() / exact) / math.log(self.farthest / exact)
        far = (exact + (share * (self.buckets - exact)).long()).clamp(max=self.buckets - 1)
        return torch.where(apart < exact, apart, far)

    def forward(self, x):
        x = x[:, -self.longest :]
        places = torch.arange(x.shape[1])
        apart = places[:, None] - places[None]
        scores = x @ x.transpose(1, 2) + self.bias(self.bucket(apart.clamp(min=0)))[..., 0]
        scores = scores.masked_fill((apart < 0) | (apart >= self.window), -1e9)
        return self.mix(scores.softmax(-1) @ x)
