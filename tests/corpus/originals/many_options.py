"""A layer with more options than examples are compared in full: each is given by one call alone.

call: torch.randn(4, 6)
call: torch.randn(4, 6), scale=torch.randn(6)
call: torch.randn(4, 6), shift=torch.randn(4, 1)
call: torch.randn(4, 6), mask=torch.ones(4, dtype=torch.bool)
call: torch.randn(4, 6), context=torch.randn(4, 6)
call: torch.randn(4, 6), noise=torch.randn(4, 6)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x, scale=None, shift=None, mask=None, context=None, noise=None):
        y = torch.tanh(self.fc(x))
        if scale is not None:
            y = y * scale
        if shift is not None:
            y = y + shift
        if mask is not None:
            y = y * mask[:, None]
        if context is not None:
            y = y * torch.sigmoid(context)
        if noise is not None and self.training:
            y = y + 0.1 * noise.detach()
        return y
