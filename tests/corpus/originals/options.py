"""A block whose constructor has a size that may be None, a table of activations, two equal numbers, switches, and no dropout by default.

call: torch.randn(4, 6)
"""

import math

import torch
from torch import nn

ACTIVATIONS = {"tanh": nn.Tanh, "gelu": nn.GELU, "silu": nn.SiLU}


class M(nn.Module):
    def __init__(self, dim=6, hidden=None, act="tanh", heads=2, groups=2, depth=2, dropout=0.0, detach=False, halve=False):
        super().__init__()
        hidden = hidden or 4 * dim
        self.inner = nn.Linear(dim, hidden)
        self.outer = nn.Linear(hidden, dim)
        nn.init.normal_(self.outer.weight, std=0.02 / math.sqrt(2 * depth))
        self.act = ACTIVATIONS[act]()
        self.drop = nn.Dropout(dropout)
        self.heads, self.groups, self.detach, self.halve = heads, groups, detach, halve

    def forward(self, x):
        y = self.act(self.inner(x)) * self.heads
        if self.detach:
            y = y.detach()
        if self.halve and not self.training:
            y = y / 2
        return x / self.groups + self.drop(self.outer(y))
