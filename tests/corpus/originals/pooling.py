"""Poolings whose windows do not divide the size: ceil mode, padding counted and not, adaptive ones.

call: torch.randn(2, 3, 7, 8)
"""

import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return (
            F.max_pool2d(x, 3, stride=2, padding=1),
            F.max_pool2d(x, 2, stride=2, ceil_mode=True),
            F.avg_pool2d(x, 3, stride=2, padding=1),
            F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
            F.avg_pool2d(x, 2, stride=2, ceil_mode=True),
            F.adaptive_avg_pool2d(x, (3, 5)),
            F.adaptive_max_pool2d(x, (3, 5)),
        )
