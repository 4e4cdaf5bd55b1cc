"""An adapter over frozen linear layers in the style of code written around bitsandbytes."""

import torch
import torch.nn as nn

try:
    import bitsandbytes as bnb
except ImportError:
    bnb = None


def make_linear(inputs, outputs, bias=True, bits=8):
    if bnb is not None and bits == 8:
        return bnb.nn.Linear8bitLt(inputs, outputs, bias=bias, has_fp16_weights=False, threshold=6.0)
    if bnb is not None and bits == 4:
        return bnb.nn.Linear4bit(inputs, outputs, bias=bias, compute_dtype=torch.bfloat16, quant_type="nf4")
    return nn.Linear(inputs, outputs, bias=bias)


class LoraLinear(nn.Module):
    """A linear layer that stays as it is, and one of low rank beside it."""

    def __init__(self, inputs, outputs, rank=2, alpha=4.0, bits=8):
        super().__init__()
        self.base = make_linear(inputs, outputs, bits=bits)
        self.lora_A = nn.Linear(inputs, rank, bias=False)
        self.lora_B = nn.Linear(rank, outputs, bias=False)
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * self.lora_B(self.lora_A(x))


class Adapter(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.up = LoraLinear(dim, hidden, bits=8)
        self.down = LoraLinear(hidden, dim, bits=4)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
