"""A gated convolution in the style of code written around causal-conv1d."""

import torch.nn as nn
import torch.nn.functional as F

try:
    from causal_conv1d import causal_conv1d_fn
except ImportError:
    causal_conv1d_fn = None


class ShortConvolution(nn.Conv1d):
    """Depthwise and causal, over (batch, length, channels), with an activation."""

    def __init__(self, hidden_size, kernel_size, bias=True, activation="silu"):
        super().__init__(hidden_size, hidden_size, kernel_size, groups=hidden_size, bias=bias, padding=kernel_size - 1)
        self.hidden_size = hidden_size
        self.activation = activation

    def forward(self, x):
        x = x.transpose(1, 2)
        if causal_conv1d_fn is not None:
            x = causal_conv1d_fn(x, self.weight.squeeze(1), self.bias, activation=self.activation)
        else:
            x = F.conv1d(x, self.weight, self.bias, padding=self.padding[0], groups=self.hidden_size)[..., : x.shape[-1]]
            x = F.silu(x) if self.activation is not None else x
        return x.transpose(1, 2)


class GatedConvolution(nn.Module):
    def __init__(self, hidden_size, kernel_size=4):
        super().__init__()
        self.q_conv = ShortConvolution(hidden_size, kernel_size)
        self.k_conv = ShortConvolution(hidden_size, kernel_size, bias=False, activation=None)
        self.v_proj = nn.Linear(hidden_size, hidden_size)
        self.o_proj = nn.Linear(hidden_size, hidden_size)

    def forward(self, x):
        return self.o_proj(self.q_conv(x) * self.k_conv(self.v_proj(x)))
