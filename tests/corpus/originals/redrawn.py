"""A layer whose weights are drawn anew when it is asked to, as its constructor does, and whose weight alone is bounded.

init: 6, 5
call: torch.randn(4, 6)
method: reset_parameters()
method: bound()
"""

import math

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.scale = nn.Parameter(torch.ones(outputs))
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-bound, bound)
        self.bias.data.uniform_(-bound, bound)

    def bound(self):
        self.weight.data.clamp_(-0.1, 0.1)

    def forward(self, x):
        return (x @ self.weight + self.bias) * self.scale
