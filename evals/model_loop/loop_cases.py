"""Small modules for the suite `loop`: some that the rules can do, and some with a call that they have no row for."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A file `model.py` with one unit `Unit`, and how it is exercised."""

    name: str
    source: str
    init: str
    call: str


HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"

CASES = (
    Case(
        "norm",
        """class Unit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * self.scale
""",
        "8",
        "torch.randn(4, 8)",
    ),
    Case(
        "mlp",
        """class Unit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))
""",
        "8",
        "torch.randn(4, 8)",
    ),
    Case(
        "attention",
        """class Unit(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv = heads, nn.Linear(width, 3 * width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mask = torch.ones(n, n, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5).masked_fill(~mask, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d)
""",
        "8, 2",
        "torch.randn(2, 5, 8)",
    ),
    Case(
        "aten",
        """class Unit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return torch.ops.aten.tanh(self.fc(x))
""",
        "8",
        "torch.randn(4, 8)",
    ),
    Case(
        "private",
        """class Unit(nn.Module):
    def forward(self, x):
        return torch._C._nn.gelu(x) * torch.ops.aten.sigmoid(x)
""",
        "",
        "torch.randn(4, 8)",
    ),
)
"""The last two have holes."""
