"""Interpolation and sampling on grids.

call: torch.randn(2, 3, 5, 6)
"""

import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def forward(self, x):
        theta = torch.tensor([[0.8, 0.1, 0.05], [-0.1, 0.9, 0.1]], dtype=x.dtype).expand(x.size(0), 2, 3)
        grid = F.affine_grid(theta, (x.size(0), 3, 4, 4), align_corners=False)
        return (
            F.interpolate(x, scale_factor=2, mode="nearest"),
            F.interpolate(x, size=(8, 9), mode="bilinear", align_corners=False),
            F.interpolate(x, size=(8, 9), mode="bilinear", align_corners=True),
            F.interpolate(x, size=(3, 4), mode="bilinear", align_corners=False),
            F.interpolate(x, size=(7, 5), mode="bicubic", align_corners=False),
            F.interpolate(x, size=(7, 4), mode="nearest"),
            F.grid_sample(x, grid, align_corners=False),
            F.pixel_shuffle(x[:, :2].repeat(1, 2, 1, 1), 2),
        )
