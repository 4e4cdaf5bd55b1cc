"""A rotation behind `torch.jit.script`, with a form that no example asks for.

call: torch.randn(3, 8)
"""

import torch
from torch import nn


@torch.jit.script
def rotated(x: torch.Tensor, angle: torch.Tensor, interleaved: bool = False):
    if interleaved:
        pairs = x.unflatten(-1, (-1, 2))
        turned = torch.stack((-pairs[..., 1], pairs[..., 0]), dim=-1).flatten(-2)
    else:
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
    return x * torch.cos(angle) + turned * torch.sin(angle)


class M(nn.Module):
    def __init__(self, interleaved: bool = False):
        super().__init__()
        self.interleaved = interleaved
        self.angle = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return rotated(x, self.angle, self.interleaved)
