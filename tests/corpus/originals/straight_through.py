"""A fake quantiser as quantisation-aware training uses it: a range that it observes, and rounding with a gradient of its own.

init: 8
call: torch.randn(4, 8)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, bits=8, momentum=0.1, observe=True, enabled=True, slope=3.0):
        super().__init__()
        self.bits = bits
        self.momentum = momentum
        self.observe = observe
        self.enabled = enabled
        self.slope = slope
        self.register_buffer("low", torch.tensor(-1.0))
        self.register_buffer("high", torch.tensor(1.0))
        self.gain = nn.Parameter(torch.tensor(1.0))

    def soft(self, x):
        # The square of a tanh: smooth, so that its curvature matters.
        return torch.tanh(x / self.slope) ** 2 * self.slope + x

    def forward(self, x):
        x = self.soft(self.gain * x)
        if self.training and self.observe:
            with torch.no_grad():
                self.low += self.momentum * (x.min() - self.low)
                self.high += self.momentum * (x.max() - self.high)
        if not self.enabled:
            return x
        step = (self.high - self.low).clamp(min=1e-5) / (2**self.bits - 1)
        levels = torch.round((x - self.low) / step).clamp(0, 2**self.bits - 1)
        y = levels * step + self.low
        return x + (y - x).detach()
