"""A mixture of experts with top-2 routing, a capacity, and scattered sums.

call: torch.randn(6, 4)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=4, experts=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(d, experts, bias=False)
        self.experts = nn.ModuleList([nn.Linear(d, d) for _ in range(experts)])

    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        weights, chosen = probs.topk(self.k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == e)
            out.index_add_(0, rows, expert(x[rows]) * weights[rows, slot, None])
        load = torch.zeros(probs.size(-1), dtype=x.dtype).scatter_add_(0, chosen.reshape(-1), torch.ones(chosen.numel(), dtype=x.dtype))
        balance = (probs.mean(0) * load / chosen.numel()).sum() * probs.size(-1)
        return out, balance, load
