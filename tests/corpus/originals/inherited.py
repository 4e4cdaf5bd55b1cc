"""A layer with noise that may be held, as layers with sampled weights are written: what holds it stands in a base class.

unit: Noisy
unit: Base
init: 4, 6
call: torch.randn(3, 4)
"""

import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def describe(self, x):
        return x.mean() * self.gain

    def _outer(self, x):
        return self.describe(x) * 2.0


class Noisy(Base):
    def __init__(self, width, out, gain):
        super().__init__(gain)
        self.weight = nn.Parameter(torch.randn(out, width) / width)
        self.level = nn.Parameter(torch.full((out,), -2.0))
        self.register_buffer("offset", torch.zeros(out))

    def _hold(self, offset):
        self.offset = offset * torch.exp(self.level)
        return self.offset

    def describe(self, x):
        return x.sum()


class M(Noisy):
    def __init__(self, width, out, gain=0.5):
        super().__init__(width, out, gain)
        self.bias = nn.Parameter(torch.zeros(out))

    def describe(self, x):
        return x.std() * self.gain

    def forward(self, x):
        x = x @ self.weight.T + self.offset
        return torch.tanh(x * self.gain) + self.bias + self.describe(x)
