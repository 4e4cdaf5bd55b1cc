"""The inverse of an affine coupling: a quotient by a gate, and one whose gate is computed in float32 whatever the inputs are.

init: 12
call: torch.randn(2, 12, 4, 4)
call: torch.randn(2, 12, 4, 4), wide=True
train: true
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, channels, width=32):
        super().__init__()
        self.first = nn.Conv2d(channels // 2, width, 3, padding=1)
        self.last = nn.Conv2d(width, channels, 3, padding=1)
        self.scale = nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, y, wide=False):
        kept, moved = y.chunk(2, 1)
        log_s, shift = (self.last(torch.relu(self.first(kept))) * torch.exp(self.scale * 3)).chunk(2, 1)
        if wide:
            x = (moved.float() / torch.sigmoid(log_s.float() + 2)).to(y.dtype) - shift
        else:
            x = moved / torch.sigmoid(log_s + 2) - shift
        return torch.cat([kept, x], 1)
