"""A mixture of experts with a capacity, and noise on the router in training.

init: 6, experts=4
call: torch.randn(2, 5, 6)
"""

import torch
from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, width, experts=4, k=2, noise=0.1, normalise=True):
        super().__init__()
        self.k = k
        self.noise = noise
        self.normalise = normalise
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) * 0.1)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) * 0.1)

    def forward(self, x):
        logits = self.router(x)
        if self.training and self.noise > 0:
            logits = logits + self.noise * torch.randn_like(logits)
        weights, chosen = torch.topk(F.softmax(logits, dim=-1, dtype=torch.float32), self.k, dim=-1)
        if self.normalise:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        gates = torch.zeros(logits.shape, dtype=weights.dtype).scatter(-1, chosen, weights).to(x.dtype)
        h = F.gelu(torch.einsum("btd,edh->bteh", x, self.up))
        y = torch.einsum("bteh,ehd->bted", h, self.down)
        return torch.einsum("bted,bte->btd", y, gates)
