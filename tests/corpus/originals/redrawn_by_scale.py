"""A layer whose weights are drawn anew, as wide as it is told.

init: 6, 5
call: torch.randn(4, 6)
method: reset()
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(inputs, outputs))
        self.second = nn.Parameter(torch.zeros(outputs, inputs))

    def reset(self, stdv=0.1, mean=0.0):
        for weight in self.parameters():
            weight.data.normal_(mean, stdv)

    def forward(self, x):
        return x @ self.first @ self.second
