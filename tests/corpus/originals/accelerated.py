"""Ways that accelerators alone take, and conditions that only begin as theirs do: of a long input the second half is scaled.

init: 6
call: torch.randn(2, 5, 6)
"""

import torch
from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.scale = nn.Parameter(torch.ones(d))
        self.fast = torch.cuda.is_available()

    def forward(self, x):
        h = self.fc(x)
        if h.is_cuda:
            return F.gelu(h)
        if self.fast and h.is_floating_point():
            return F.gelu(h, approximate="tanh")
        if h.is_cuda or h.shape[1] > 300:
            return torch.cat([h[:, :300], h[:, 300:] * self.scale * 2], dim=1)
        return torch.relu(h) * self.scale
