"""A part that runs without gradients, so that no optimiser trains it, and pooling by scores whose bias has no gradient.

init: 6
call: torch.randn(4, 5, 6)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.fixed = nn.Linear(d, d)
        self.score = nn.Linear(d, 1)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        with torch.no_grad():
            y = torch.tanh(self.fixed(x))
        return self.out((self.score(x).softmax(dim=1) * y).sum(1))
