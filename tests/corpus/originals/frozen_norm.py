"""A residual conv block, as detection code trains it: its batch norms may stand still while the rest trains.

init: 4
call: torch.randn(4, 3, 6, 6)
"""

from torch import nn
from torch.nn import functional as F


class M(nn.Module):
    def __init__(self, width, rate=0.25, slope=0.1):
        super().__init__()
        self.slope = slope
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width, momentum=0.3)
        self.drop = nn.Dropout(rate)
        self.head = nn.Linear(width, 5)

    def forward(self, x):
        x = F.leaky_relu(self.norm(self.stem(x)), self.slope)
        x = x + F.leaky_relu(self.norm2(self.conv(x)), self.slope)
        return self.head(self.drop(x.mean((2, 3))))
