"""Batch norm and ReLU, layer after layer, on a small batch: float32 crosses kinks that float64 does not.

call: torch.randn(6, 32)
"""

import torch
import torch.nn as nn


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)
        self.norm = nn.BatchNorm1d(d)

    def forward(self, x):
        return torch.relu(self.norm(self.fc(x)))


class M(nn.Module):
    def __init__(self, d=32, depth=10):
        super().__init__()
        self.layers = nn.ModuleList([Layer(d) for _ in range(depth)])
        self.head = nn.Linear(d, 4)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
