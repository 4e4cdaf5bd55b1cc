"""Changes that others see: activations in place on tensors that are read again, parts of a loop, a swap of views, a tensor in a list.

call: torch.randn(4, 6)
train: true
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.relu = nn.ReLU(inplace=True)
        self.act = nn.Sequential(nn.LeakyReLU(0.1, inplace=True), nn.Linear(6, 6))

    def forward(self, x):
        h = self.fc(x)
        skip = h + self.relu(h)
        y = skip.clone()
        kept = [y, skip - 0.5]
        kept[0].sub_(0.25)
        for part, gate in zip((y[:, :3], y[:, 3:]), (0.5, 2.0)):
            part.mul_(gate)
        y[:, 1], y[:, 2] = y[:, 2], y[:, 1]
        z = self.act(y)
        return z + y + self.relu(kept[1]) + kept[1] + skip
