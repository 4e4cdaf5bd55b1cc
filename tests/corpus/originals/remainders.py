"""Sequences are padded to whole windows, of which the example has one too few numbers.

call: torch.randn(2, 11, 6)
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self, window=4):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.window = window

    def forward(self, x):
        b, n, d = x.shape
        remainder = n % self.window
        if remainder > 0:
            x = F.pad(x, (0, 0, 0, self.window - remainder))
        windows = self.fc(x).view(b, -1, self.window, d)
        weights = torch.softmax(windows.mean(dim=(1, 3)), dim=-1)
        return (windows * weights[:, None, :, None]).reshape(b, -1, d)[:, :n]
