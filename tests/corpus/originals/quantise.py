"""Vector quantisation: nearest code with ties, straight-through gradient, commitment loss, running code counts.

call: torch.randn(6, 4)
train: true
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self, codes=8, d=4, beta=0.25):
        super().__init__()
        self.beta = beta
        self.codebook = nn.Embedding(codes, d)
        self.register_buffer("usage", torch.zeros(codes))

    def forward(self, z):
        w = self.codebook.weight
        d = z.pow(2).sum(1, keepdim=True) - 2 * z @ w.t() + w.pow(2).sum(1)
        index = d.argmin(1)
        q = self.codebook(index)
        loss = (q - z.detach()).pow(2).mean() + self.beta * (q.detach() - z).pow(2).mean()
        if self.training:
            counts = F.one_hot(index, w.size(0)).to(z.dtype).sum(0)
            self.usage.mul_(0.99).add_(counts, alpha=0.01)
        probs = F.one_hot(index, w.size(0)).to(z.dtype).mean(0)
        perplexity = torch.exp(-(probs * torch.log(probs + 1e-10)).sum())
        return z + (q - z).detach(), loss, index, perplexity
