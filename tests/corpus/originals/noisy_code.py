"""A code that is drawn in training, with the deviation that the module gives itself.

call: torch.randn(5, 6)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.deviation = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        mean, logarithm = self.mean(x), self.deviation(x)
        if self.training:
            return mean + torch.randn_like(mean) * torch.exp(logarithm / 20), logarithm
        return mean, logarithm
