"""A small vision transformer: patches, a class token, positions, and a choice of pooling.

init: 8, patch=4, size=8
call: torch.randn(2, 3, 8, 8)
method: features(torch.randn(2, 3, 8, 8))
"""

import torch
from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, width, patch=4, size=8, pool="token", rate=0.1, classes=5):
        super().__init__()
        if pool not in ("token", "mean"):
            raise ValueError(pool)
        self.pool = pool
        self.embed = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 1 + (size // patch) ** 2, width) * 0.02)
        self.drop = nn.Dropout(rate)
        self.norm1 = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width)
        self.norm2 = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def features(self, images):
        x = self.embed(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1)
        x = self.drop(x + self.places)
        q, k, v = self.attend(self.norm1(x)).chunk(3, dim=-1)
        x = x + F.scaled_dot_product_attention(q, k, v)
        return self.norm2(x)

    def forward(self, images):
        x = self.features(images)
        x = x[:, 0] if self.pool == "token" else x[:, 1:].mean(dim=1)
        return self.head(x)
