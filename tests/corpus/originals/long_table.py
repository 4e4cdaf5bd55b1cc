"""A table of sines for many positions: its angles are large, so that float32 leaves the sines few digits.

call: torch.randn(2, 6, 8)
"""

import math

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=8, most=5000):
        super().__init__()
        table = torch.zeros(most, d)
        positions = torch.arange(0, most).float().unsqueeze(1)
        rates = (torch.arange(0, d, 2).float() * -(math.log(10000.0) / d)).exp()
        table[:, 0::2] = torch.sin(positions * rates)
        table[:, 1::2] = torch.cos(positions * rates)
        self.register_buffer("table", table.unsqueeze(0))

    def forward(self, x):
        return x + self.table[:, : x.size(1)]
