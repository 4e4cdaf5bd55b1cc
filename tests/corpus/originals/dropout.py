"""Dropouts: elementwise, over channels, over whole samples (stochastic depth), and noise.

call: torch.randn(4, 6, 10)
"""

import torch
from torch import nn


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training:
            return x
        keep = torch.rand(x.size(0), 1, 1, device=x.device) >= self.p
        return x * keep / (1 - self.p)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 10)
        self.drop = nn.Dropout(0.25)
        self.channels = nn.Dropout1d(0.5)
        self.path = DropPath(0.3)

    def forward(self, x):
        h = self.drop(torch.tanh(self.fc(x)))
        h = self.channels(h)
        if self.training:
            h = h + 0.05 * torch.randn_like(h)
        return x + self.path(h)
