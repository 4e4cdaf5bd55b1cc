"""A helper that tells its argument by its class.

call: torch.randn(4, 5)
"""

import torch
from torch import nn


def combine(a, b, how):
    if how is None:
        return a + b
    if isinstance(how, dict):
        return how["first"] * a + how["second"] * b
    if callable(how):
        return how(a, b)
    raise TypeError(f"cannot combine by {how}")


class M(nn.Module):
    def __init__(self, how=None):
        super().__init__()
        self.how = how
        self.one = nn.Linear(5, 5)
        self.two = nn.Linear(5, 5)

    def forward(self, x, *more, **named):
        y = combine(self.one(x), self.two(x), self.how)
        for other in more:
            y = y - self.two(other)
        for name, value in named.items():
            y = torch.where(value > 0, y, -y)
        return y
