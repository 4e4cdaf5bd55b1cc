"""A class with a constructor of its own, which hands a table to that of its base: what the base does with a trained table, no subclass asks for.

unit: M
unit: Encoding
init: 5
call: torch.randn(3, 5)
"""

import torch
from torch import nn


class Encoding(nn.Module):
    def __init__(self, table, is_trained=False):
        super().__init__()
        if is_trained:
            self.register_parameter("table", nn.Parameter(table))
        else:
            self.register_buffer("table", table)

    def forward(self, x):
        return torch.sin(x @ self.table)


class M(Encoding):
    def __init__(self, width):
        super().__init__(torch.eye(width) * 0.5)
        self.width = width

    def forward(self, x):
        if x.shape[-1] != self.width:
            raise ValueError("another width")
        return torch.cos(x @ self.table)
