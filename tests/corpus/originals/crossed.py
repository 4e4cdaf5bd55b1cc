"""Attention to as many keys and values as there are queries: the first ones, and zeros where there are fewer.

init: 6
call: torch.randn(2, 5, 6), torch.randn(2, 5, 6), torch.randn(2, 5, 6)
"""

import torch
from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, width)

    def forward(self, queries, keys, values):
        length = queries.shape[1]
        keys, values = (F.pad(x, (0, 0, 0, max(length - x.shape[1], 0)))[:, :length] for x in (keys, values))
        shares = (queries @ keys.transpose(1, 2)).softmax(-1)
        return self.out(shares @ values)
