"""A selective state space recurrence, discounted returns backwards in time, and a running maximum.

call: torch.randn(2, 7, 4)
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self, d=4, n=4):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, n + 1).float()).repeat(d, 1))
        self.D = nn.Parameter(torch.ones(d))
        self.proj = nn.Linear(d, 2 * n + d)

    def forward(self, x):
        B, T, d = x.shape
        n = self.A_log.size(1)
        b, c, dt = self.proj(x).split([n, n, d], -1)
        dt = F.softplus(dt)
        a = torch.exp(dt[..., None] * -torch.exp(self.A_log))
        u = dt[..., None] * b[:, :, None, :] * x[..., None]
        h = x.new_zeros(B, d, n)
        ys = []
        for t in range(T):
            h = a[:, t] * h + u[:, t]
            ys.append((h * c[:, t, None, :]).sum(-1))
        y = torch.stack(ys, 1) + x * self.D
        returns, running = [], x.new_zeros(B, d)
        for t in reversed(range(T)):
            running = x[:, t] + 0.9 * running
            returns.append(running)
        return y, torch.stack(returns[::-1], 1), x.cummax(1).values, h
