"""A layer that reads its settings in each call, and a method that changes them.

init: Settings()
call: torch.randn(2, 5, 6)
method: stretch(torch.randn(2, 5, 6), 20.0)
"""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    width: int = 6
    period: float = 10.0


class M(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.lin = nn.Linear(settings.width, settings.width)

    def forward(self, x):
        place = torch.arange(x.size(1), dtype=x.dtype, device=x.device).unsqueeze(1)
        return self.lin(x + torch.sin(place / self.settings.period))

    def stretch(self, x, period):
        self.settings.period = period
        return self(x)
