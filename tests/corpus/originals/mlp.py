"""A residual feed-forward block: layer norm, exact GELU, two linear maps of equal sizes.

init: 8
call: torch.randn(4, 8)
"""

from torch import nn


class M(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, d)
        self.act = nn.GELU()
        self.down = nn.Linear(d, d)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))
