"""Choices that are drawn: indices by their probabilities, and a softmax with Gumbel noise.

call: torch.randn(4, 6)
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        y = self.fc(x)
        chosen = torch.multinomial(torch.softmax(y, dim=-1), 2)
        return chosen, F.gumbel_softmax(y, tau=0.7)
