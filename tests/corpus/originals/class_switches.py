"""A norm with switches of its class, as code bases have them for experiments.

init: 6
call: torch.randn(3, 6) + 0.5
"""

import torch
from torch import nn


class M(nn.Module):
    centre = True
    power = 2

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        if self.centre:
            x = x - x.mean(-1, keepdim=True)
        size = x.abs().pow(self.power).mean(-1, keepdim=True)
        return x / (size + 1e-6).pow(1 / self.power) * self.weight
