"""Layer scale and a residual in one pass, as a C++ extension that torch compiles when the file is imported."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor scaled_residual(torch::Tensor x, torch::Tensor branch, torch::Tensor scale) {
    return torch::addcmul(x, branch, scale);
}
"""

fused = load_inline(name="fused_scaled_residual", cpp_sources=SOURCE, functions=["scaled_residual"])


def scaled_residual(x, branch, scale):
    return fused.scaled_residual(x, branch, scale)


def scaled_residual_torch(x, branch, scale):
    """The same without the extension."""
    return x + branch * scale


class Block(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.scale = nn.Parameter(1e-2 * torch.ones(dim))

    def forward(self, x):
        branch = self.down(torch.relu(self.up(self.norm(x))))
        return scaled_residual(x, branch, self.scale)
