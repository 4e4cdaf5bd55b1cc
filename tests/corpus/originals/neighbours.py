"""Attention over the neighbours in a graph, whose edges are weights: those above zero count.

init: 6, 4
call: torch.randn(5, 6), (torch.rand(5, 5) < 0.5).float()
"""

import torch
from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.query = nn.Parameter(torch.randn(width, heads) / width**0.5)
        self.key = nn.Parameter(torch.randn(width, heads) / width**0.5)
        self.value = nn.Parameter(torch.randn(width, heads) / width**0.5)

    def forward(self, nodes, edges):
        scores = F.relu((nodes @ self.query).sum(1, keepdim=True) + (nodes @ self.key).sum(1))
        scores = scores.masked_fill(edges <= 0, -1e4)
        return scores.softmax(-1) @ (nodes @ self.value)
