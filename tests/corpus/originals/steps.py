"""Step sizes that start log-uniform, not below a floor that nothing reaches by default, and pass through an inverse softplus.

call: torch.randn(5, 4)
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self, rank=4, dim=12, low=0.01, high=1.0, floor=1e-4):
        super().__init__()
        self.project = nn.Linear(rank, dim)
        with torch.no_grad():
            step = torch.exp(torch.rand(dim) * (math.log(high) - math.log(low)) + math.log(low)).clamp(min=floor)
            self.project.bias.copy_(step + torch.log(-torch.expm1(-step)))
        self.decay = nn.Parameter(torch.log(torch.arange(1, dim + 1, dtype=torch.float32)))

    def forward(self, x):
        return torch.exp(-F.softplus(self.project(x)) * torch.exp(self.decay))
