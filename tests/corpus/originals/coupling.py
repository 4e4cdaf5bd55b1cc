"""An affine coupling whose log scale overflows in float32 with drawn weights: its gradients are lost there, torch's own too.

call: torch.randn(2, 12, 4, 4)
train: true
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, channels=12, width=96):
        super().__init__()
        self.first = nn.Conv2d(channels // 2, width, 3, padding=1)
        self.last = nn.Conv2d(width, channels, 3, padding=1)
        self.scale = nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, x):
        kept, moved = x.chunk(2, 1)
        log_s, shift = (self.last(torch.relu(self.first(kept))) * torch.exp(self.scale * 3)).chunk(2, 1)
        s = torch.sigmoid(log_s + 2)
        logdet = torch.sum(torch.log(s).view(x.shape[0], -1), 1)
        return torch.cat([kept, (moved + shift) * s], 1), logdet
