"""Alpha dropout that stays on in evaluation, as Monte Carlo dropout does.

init: 6
call: torch.randn(8, 6)
"""

import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self, width, p=0.3):
        super().__init__()
        self.p = p
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return F.alpha_dropout(self.fc(x), self.p, training=True)
