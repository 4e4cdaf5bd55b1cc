"""Integer and rounding arithmetic: floor and truncating division, remainders, rounding to even, shifts, mixed dtypes.

call: torch.tensor([-7, -3, -1, 0, 2, 5, 9]), torch.tensor([2, -2, 3, 4, -5, 3, 2]), torch.tensor([-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5])
"""

import torch
from torch import nn


class M(nn.Module):
    def forward(self, a, b, x):
        return {
            "floor": a // b,
            "trunc": torch.div(a, b, rounding_mode="trunc"),
            "remainder": a % b,
            "fmod": torch.fmod(a, b),
            "true": a / b,
            "round": torch.round(x),
            "truncx": torch.trunc(x),
            "floorx": x // 2,
            "modx": x % 2,
            "fmodx": torch.fmod(x, 2),
            "sign": torch.sign(x),
            "copysign": torch.copysign(torch.ones_like(x), x),
            "atan2": torch.atan2(x * 0, -torch.ones_like(x)),
            "inverse": 1 / (x * 0 - 0.0).abs().neg(),
            "shift": a >> 1,
            "long": x.long(),
            "mean": a.float().mean(),
            "sum": a.sum(),
            "mixed": a * 0.5,
            "bool": (a > b) & (x != 0),
            "power": a**2,
        }
