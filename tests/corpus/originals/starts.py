"""Three projections in one matrix that start with their own deviations, an orthogonal matrix, two equal layers, a bias by halves.

init: 8
call: torch.randn(5, 8)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.mix = nn.Linear(d, d, bias=False)
        self.one, self.two = nn.Linear(d, d), nn.Linear(d, d)
        for part, deviation in zip(self.qkv.weight.data.chunk(3), (0.1, 0.2, 0.4)):
            nn.init.normal_(part, std=deviation)
        nn.init.constant_(self.qkv.bias.data[:d], 1.0)
        nn.init.zeros_(self.qkv.bias.data[d:])
        nn.init.orthogonal_(self.mix.weight)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.two(self.one(torch.tanh(q) * k).relu()) + self.mix(v)
