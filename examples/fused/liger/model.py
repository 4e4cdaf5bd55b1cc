"""A decoder layer and its loss in the style of code written around Liger kernels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss, LigerRMSNorm
    from liger_kernel.transformers.functional import liger_swiglu

    LIGER = True
except ImportError:
    LIGER = False


class PlainRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, x):
        dtype = x.dtype
        x = x.float() if dtype in (torch.float16, torch.bfloat16) else x
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)).to(dtype)


class MLP(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.norm = LigerRMSNorm(hidden_size, eps=1e-5) if LIGER else PlainRMSNorm(hidden_size, eps=1e-5)
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        y = self.norm(x)
        if LIGER:
            y = liger_swiglu(self.gate_proj(y), self.up_proj(y))
        else:
            y = F.silu(self.gate_proj(y)) * self.up_proj(y)
        return x + self.down_proj(y)


class CausalLM(nn.Module):
    """Returns the loss of each next token."""

    def __init__(self, vocab_size, hidden_size, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList([MLP(hidden_size, 3 * hidden_size) for _ in range(layers)])
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)
        self.loss = LigerFusedLinearCrossEntropyLoss(ignore_index=-100) if LIGER else None

    def forward(self, tokens, labels):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        x, labels = x[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        if self.loss is not None:
            return self.loss(self.lm_head.weight, x, labels)
        return F.cross_entropy(self.lm_head(x), labels, ignore_index=-100)
