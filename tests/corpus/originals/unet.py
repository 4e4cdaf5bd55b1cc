"""A U-Net whose deepest batch norms see two numbers a channel: what float32 rounds moves its gradients by much.

call: torch.randn(2, 3, 8, 8)
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_out)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class M(nn.Module):
    def __init__(self, n_in=3, n_out=2, width=8, depth=3):
        super().__init__()
        widths = [width * 2**level for level in range(depth)]
        self.first = DoubleConv(n_in, width)
        self.down = nn.ModuleList([DoubleConv(w, 2 * w) for w in widths])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in widths])
        self.join = nn.ModuleList([DoubleConv(2 * w, w) for w in widths])
        self.head = nn.Conv2d(width, n_out, 1)

    def forward(self, x):
        x, skips = self.first(x), []
        for block in self.down:
            skips.append(x)
            x = block(F.max_pool2d(x, 2))
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)
