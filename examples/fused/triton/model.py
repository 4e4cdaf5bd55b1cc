"""A gated MLP in the style of code with its own Triton kernel: the kernel on a GPU, torch elsewhere."""

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl

    HAS_TRITON = True
except ImportError:
    HAS_TRITON = False

if HAS_TRITON:

    @triton.jit
    def _swiglu_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        a = tl.load(a_ptr + offsets, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, a * tl.sigmoid(a) * b, mask=mask)


def swiglu(a, b):
    """silu(a) * b."""
    if HAS_TRITON and a.is_cuda:
        out = torch.empty_like(a)
        n = out.numel()
        _swiglu_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
        return out
    return F.silu(a) * b


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(swiglu(self.gate(x), self.up(x)))
