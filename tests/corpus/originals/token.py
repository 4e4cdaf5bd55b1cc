"""A class token of 24 numbers before layers of thousands, and a share of each layer's result that is computed for its depth.

init: 24
call: torch.randn(2, 5, 24)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=24, depth=4):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, d) * 0.02)
        self.shares = [share.item() for share in torch.linspace(1.0, 0.5, depth)]
        self.inner = nn.ModuleList(nn.Linear(d, 8 * d) for _ in range(depth))
        self.outer = nn.ModuleList(nn.Linear(8 * d, d) for _ in range(depth))

    def forward(self, x):
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1)
        for share, inner, outer in zip(self.shares, self.inner, self.outer):
            x = x + share * outer(torch.tanh(inner(x)))
        return x[:, 0]
