"""A table of angles that the first call of a length fills, and that later calls read, whatever positions they are given.

call: torch.randn(5, 6), torch.randn(5)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.register_buffer("angles", torch.zeros(16, 6), persistent=False)
        self.filled = 0

    def forward(self, x, positions):
        length = len(positions)
        if length > self.filled:
            rates = 1 / torch.arange(1.0, 7.0)
            self.angles[:length] = positions.detach()[:, None] * rates
            self.filled = length
        return self.fc(x) * torch.cos(self.angles[:length])
