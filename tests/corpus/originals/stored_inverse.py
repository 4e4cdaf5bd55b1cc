"""A mixing of channels that can be undone, by an inverse that may be stored before.

init: 4
call: torch.randn(2, 5, 4)
call: torch.randn(2, 5, 4), reverse=True
method: store()
method: restart()
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.linalg.qr(torch.randn(channels, channels))[0])
        self._inverse = None

    def store(self):
        self._inverse = torch.inverse(self.weight)
        self.inverse = self._inverse

    def restart(self):
        self._inverse = torch.zeros_like(self.weight)

    def forward(self, x, reverse=False):
        if reverse:
            weight, volume = self._inverse if self._inverse is not None else torch.inverse(self.weight), None
        else:
            weight, volume = self.weight, torch.logdet(self.weight)
        return x @ weight, volume
