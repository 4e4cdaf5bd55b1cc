"""A loss of a critic: a small number keeps the logarithm finite where a sigmoid is one.

init: 6
call: torch.randn(5, 6)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.critic = nn.Linear(width, 1)

    def forward(self, x):
        p = torch.sigmoid(self.critic(x))
        q = 1 - p
        return torch.log(p + 1e-8), torch.log(q + 1e-8)
