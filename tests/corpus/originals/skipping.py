"""Layers that are left out at random, and a random scale: one number each, drawn by Python and by numpy.

call: torch.randn(3, 8)
"""

import random

import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self, p=0.02, scale=0.1):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.p = p
        self.scale = scale

    def forward(self, x):
        if self.training:
            x = x * np.random.uniform(1 - self.scale, 1 + self.scale)
        for layer in self.layers:
            if self.training and random.random() < self.p:
                continue
            x = x + torch.tanh(layer(x))
        return x
