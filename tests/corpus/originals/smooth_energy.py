"""An energy whose gradient of the input is a force: training differentiates it twice.

init: 5
call: torch.randn(6, 5)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, width, hidden=8, beta=1.5):
        super().__init__()
        self.beta = beta
        self.inner = nn.Linear(width, hidden)
        self.outer = nn.Linear(hidden, 1)

    def energy(self, x):
        h = self.inner(x)
        h = h * torch.sigmoid(self.beta * h)
        return self.outer(h).squeeze(-1)

    def forward(self, x):
        with torch.enable_grad():
            x = x if x.requires_grad else x.requires_grad_()
            e = self.energy(x)
            force = -torch.autograd.grad(e.sum(), x, create_graph=True)[0]
        return e, force
