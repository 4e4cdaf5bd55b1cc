"""What a batch norm gives is divided by its largest magnitude where that is beyond a limit, and attended by distance to the largest of each row.

call: torch.randn(4, 6, 8)
train: true
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, dim=8, limit=2.0):
        super().__init__()
        self.norm = nn.BatchNorm1d(dim)
        self.fc = nn.Linear(dim, dim)
        self.limit = limit

    def forward(self, x):
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        big = x.abs().max()
        if big > self.limit:
            x = x * (self.limit / big)
        y = torch.tanh(self.fc(x) * 2 + x)
        top = y.amax(dim=-1, keepdim=True)
        return x + torch.exp(y - top) * (1 + top)
