"""Layers that are left out at random, dropout in them, and noise that is added at random.

call: torch.randn(4, 8)
"""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(torch.tanh(self.fc(x)))


class M(nn.Module):
    def __init__(self, d=8, n=3, p=0.3):
        super().__init__()
        self.layers = nn.ModuleList([Layer(d) for _ in range(n)])
        self.p = p

    def forward(self, x):
        for layer in self.layers:
            if self.training and torch.rand(()) < self.p:
                continue
            x = layer(x)
        if self.training and torch.rand(()) < 0.5:
            x = x + 0.1 * torch.randn_like(x)
        return x
