"""A tower of equal layers over an embedding that its head shares.

init: 11, 6, depth=3
call: torch.randint(0, 11, (3, 4))
method: encode(torch.randint(0, 11, (3, 4)))
"""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        return x + self.drop(self.down(torch.tanh(self.up(x))))


class M(nn.Module):
    def __init__(self, words, width, depth=3, rate=0.2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.drop = nn.Dropout(rate)
        self.layers = nn.ModuleList(Layer(width, rate) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def encode(self, ids):
        x = self.drop(self.embed(ids))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def forward(self, ids):
        return self.head(self.encode(ids))
