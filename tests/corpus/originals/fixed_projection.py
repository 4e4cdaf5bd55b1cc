"""Random features of a projection that is a parameter, and is not trained.

init: 6, 4
call: torch.randn(3, 6)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, width, features):
        super().__init__()
        self.projection = nn.Parameter(torch.randn(width, features), requires_grad=False)
        self.fc = nn.Linear(features, width)

    def forward(self, x):
        return self.fc(torch.cos(x @ self.projection))
