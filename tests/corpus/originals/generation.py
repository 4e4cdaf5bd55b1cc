"""A small language model that samples what comes next, with a window, a temperature and the likeliest tokens alone.

call: torch.randint(0, 13, (2, 5))
method: generate(torch.randint(0, 13, (2, 3)), 4)
method: generate(torch.randint(0, 13, (2, 4)), 5, temperature=0.7, top_k=3)
"""

import torch
from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, vocab=13, d=8, block_size=6):
        super().__init__()
        self.block_size = block_size
        self.tokens, self.places = nn.Embedding(vocab, d), nn.Embedding(block_size, d)
        self.attn, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.head = nn.Linear(d, vocab)

    def forward(self, idx):
        x = self.tokens(idx) + self.places(torch.arange(idx.size(1)))
        q, k, v = self.attn(x).chunk(3, -1)
        return self.head(x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True)))

    @torch.no_grad()
    def generate(self, idx, steps, temperature=1.0, top_k=None):
        for _ in range(steps):
            context = idx if idx.size(1) <= self.block_size else idx[:, -self.block_size :]
            logits = self(context)[:, -1, :] / temperature
            if top_k is not None:
                least = torch.topk(logits, min(top_k, logits.size(-1))).values[:, [-1]]
                logits = logits.masked_fill(logits < least, float("-inf"))
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), 1)), dim=1)
        return idx
