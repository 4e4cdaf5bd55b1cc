"""Strided, dilated, grouped and transposed convolutions with ReLU6 and leaky ReLU.

call: torch.randn(2, 4, 11, 11)
"""

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.dilated = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
        self.relu6 = nn.ReLU6()
        self.leaky = nn.LeakyReLU(0.2)

    def forward(self, x):
        h = self.relu6(self.stem(x))
        h = self.leaky(self.dilated(h))
        h = h + self.depthwise(h)
        return self.up(h)
