"""A mean over a list, with a warm-up that a counter leads, a switch among the buffers, and a scale that is not trained.

call: [torch.randn(4, 6), torch.randn(4, 6)]
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.full((6,), 0.5), requires_grad=False)
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("smooth", torch.tensor(False))

    def forward(self, parts):
        if self.training:
            self.steps += 1
        y = sum(self.fc(part) for part in parts) / len(parts)
        y = torch.where(self.smooth, torch.tanh(y), y)
        return y * self.scale * torch.clamp(1 + self.steps / 1000, max=2.0)
