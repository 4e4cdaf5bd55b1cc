"""Values that start normalised: a queue whose columns have one length, prototypes whose rows do, and mixing weights that sum to one.

call: torch.randn(5, 6)
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self, dim=6, size=16, filters=10):
        super().__init__()
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.prototypes = nn.Parameter(F.normalize(torch.randn(filters, dim), dim=1))
        self.mix = nn.Parameter(torch.softmax(torch.randn(filters, size), dim=1))
        self.free = nn.Parameter(torch.randn(size, dim) * dim**-0.5)

    def forward(self, x):
        scores = x @ self.queue
        return scores + x @ self.prototypes.T @ self.mix, torch.tanh(scores) @ self.free
