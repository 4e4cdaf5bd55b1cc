"""Paddings of every mode, unequal on the two sides, and a roll.

call: torch.randn(2, 3, 5, 6)
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return (
            F.pad(x, (1, 2, 3, 0), value=0.5),
            F.pad(x, (2, 1, 1, 2), mode="reflect"),
            F.pad(x, (2, 1, 0, 3), mode="replicate"),
            F.pad(x, (1, 2, 2, 0), mode="circular"),
            F.pad(x, (-1, 1)),
            torch.roll(x, (1, -2), (2, 3)),
            F.unfold(x, 3, padding=1, stride=2),
        )
