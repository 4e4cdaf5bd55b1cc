"""Residual layers with dropout: masks that a rewrite may draw in a loop, under `vmap`, or in a function that is compiled on its own.

call: torch.randn(4, 6)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        for layer in self.layers:
            x = x + self.drop(torch.tanh(layer(x)))
        return x
