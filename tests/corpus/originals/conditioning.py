"""Ill-conditioned arithmetic: a norm far from zero, a difference of large sums, a root at its branch point, a matrix inverse.

call: torch.randn(3, 7)
"""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, x):
        y = x + 1e5
        normed = (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        a = torch.outer(x[0], x[0]) + 1e-3 * torch.eye(x.size(1), dtype=x.dtype)
        solved = torch.linalg.solve(a, x[1])
        logdet = (a @ a.t()).diagonal().log().sum()
        wave = torch.sin(1e4 * x)
        return normed, solved, logdet, wave, (x.exp() * 1e3).sum(-1) - (x.exp() * 1e3).roll(1, -1).sum(-1) + x[:, 0]
