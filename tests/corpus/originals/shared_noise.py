"""Multiplicative noise that all steps of a sequence share, in training only.

init: 0.25
call: torch.randn(5, 3, 4)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or not self.rate:
            return x
        kept = x.new_empty(1, x.shape[1], x.shape[2]).bernoulli_(1 - self.rate)
        return x * (kept / (1 - self.rate))
