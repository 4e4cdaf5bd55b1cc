"""Small modules on which tracing adapters and transpilers were seen to be wrong: the `cases` of the peers suite.

A repository of one file, with its examples. The comments say what goes wrong elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FILE = "cases.py"

SOURCE = '''
import math

import torch
import torch.nn.functional as F
from torch import nn


class ViewWrite(nn.Module):
    """A write through a view reaches the tensor that it looks at."""

    def forward(self, x):
        y = x * 2
        flat = y.view(-1)
        flat[0] = 7.0
        flat.mul_(3.0)
        return y


class TransposeWrite(nn.Module):
    """So does one through `.t()`."""

    def forward(self, x):
        y = x * 2
        y.t()[0] = 7.0
        y.t().add_(1.0)
        return y


class SliceWrite(nn.Module):
    """And one through a slice that has a name."""

    def forward(self, x):
        y = x * 2
        half = y[:, : y.shape[1] // 2]
        half += 1.0
        return y


class TensorBranch(nn.Module):
    """Which way is taken depends on a value: under `jax.jit` there is none."""

    def forward(self, x):
        if x.sum() > 0:
            x = x * 2
        else:
            x = x - 1
        return x


class ExactGelu(nn.Module):
    """GELU by the error function; JAX's default is the approximation by tanh, 1e-4 off."""

    def __init__(self):
        super().__init__()
        self.act = nn.GELU()

    def forward(self, x):
        return self.act(x) + F.gelu(x)


class TanhGelu(nn.Module):
    """The approximation, where it is asked for."""

    def forward(self, x):
        return F.gelu(x, approximate="tanh")


class ResidualBlock(nn.Module):
    """Convolution and batch norm, with its running statistics."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(x + self.bn2(self.conv2(y)))


class Counter(nn.Module):
    """A buffer that each call changes."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(size))

    def forward(self, x):
        self.steps += 1
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return x - self.mean


class Lstm(nn.Module):
    """Two layers, both ways."""

    def __init__(self, size):
        super().__init__()
        self.lstm = nn.LSTM(size, size, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * size, 1)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.out(y) + h.mean() + c.mean()


class Blocks(nn.Module):
    """A list of modules, walked by index and by slice."""

    def __init__(self, size, depth):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(size, size) for _ in range(depth)])

    def forward(self, x):
        for index, block in enumerate(self.blocks[:-1]):
            x = torch.tanh(block(x)) * (index + 1)
        return self.blocks[-1](x)


class Cache(nn.Module):
    """Keys and values of earlier calls are kept."""

    def __init__(self, size, length):
        super().__init__()
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.register_buffer("keys", torch.zeros(length, size))
        self.register_buffer("values", torch.zeros(length, size))

    def forward(self, x, start: int):
        self.keys[start : start + x.shape[0]] = self.key(x).detach()
        self.values[start : start + x.shape[0]] = self.value(x).detach()
        weights = (x @ self.keys.t() / math.sqrt(x.shape[-1])).softmax(-1)
        return weights @ self.values


class Rotary(nn.Module):
    """Rotated queries: halves, concatenation, outer products."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, size, 2).float() / size))

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[-2], device=x.device).type_as(self.frequencies), self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


class Attention(nn.Module):
    """Causal attention with a mask of minus infinity."""

    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.heads, d // self.heads).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        mask = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)).masked_fill(mask, float("-inf")).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))


class Encoder(nn.Module):
    """PyTorch's own encoder, in a deeper stack than one."""

    def __init__(self, size):
        super().__init__()
        layer = nn.TransformerEncoderLayer(size, 2, 2 * size, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x)
'''.lstrip()

_CALLS = {
    "ViewWrite": ("", "torch.randn(3, 4)"),
    "TransposeWrite": ("", "torch.randn(3, 4)"),
    "SliceWrite": ("", "torch.randn(3, 4)"),
    "TensorBranch": ("", "torch.randn(3, 4)"),
    "ExactGelu": ("", "torch.randn(3, 4)"),
    "TanhGelu": ("", "torch.randn(3, 4)"),
    "ResidualBlock": ("3", "torch.randn(2, 3, 6, 6)"),
    "Counter": ("4", "torch.randn(3, 4)"),
    "Lstm": ("4", "torch.randn(2, 5, 4)"),
    "Blocks": ("4, 3", "torch.randn(2, 4)"),
    "Cache": ("4, 8", "torch.randn(2, 4), 3"),
    "Rotary": ("8", "torch.randn(2, 5, 8)"),
    "Attention": ("8, 2", "torch.randn(2, 5, 8)"),
    "Encoder": ("8", "torch.randn(2, 5, 8)"),
}
"""Class → arguments of its constructor, and of its call."""

EXAMPLES: tuple[Mapping[str, Any], ...] = tuple(
    {"module": f"{FILE}:{name}", "init": init, "call": call} for name, (init, call) in _CALLS.items()
)
