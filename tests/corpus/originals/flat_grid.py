"""Tokens of a grid beside the grid's weights: the number of tokens is tied to rows and columns.

call: torch.randn(2, 12, 6), torch.rand(2, 3, 4)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.mix = nn.Linear(d, d)

    def forward(self, tokens, weights):
        rows, columns = weights.shape[1:]
        grid = tokens.unflatten(1, (rows, columns)) * weights[..., None]
        grid = torch.tanh(self.mix(grid))
        return torch.stack([grid.mean(1).amax(1), grid.amax(1).mean(1)], dim=1)
