"""A block whose numbers stand in settings inside of settings, with a window of two equal sides.

setup: from types import SimpleNamespace as S
init: S(model=S(width=6, gain=0.5), window=Window(3, 3), dropped={"rate": {"first": 0.0}})
call: torch.randn(2, 6, 8, 8)
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class Window(NamedTuple):
    height: int
    width: int


class M(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.window = settings.window
        self.gain = settings.model.gain
        self.share = 1.0 - settings.dropped["rate"]["first"]
        self.proj = nn.Linear(settings.model.width, settings.model.width)

    def forward(self, x):
        y = F.avg_pool2d(x, (self.window.height, self.window.width), stride=1)
        y = self.proj(y.movedim(1, -1)).movedim(-1, 1)
        return torch.tanh(y * self.gain) * self.share
