"""A gated MLP whose gate is a pair of Triton kernels, forward and backward. Nothing guards them: this code is for GPUs."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def _swiglu_forward_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, a * tl.sigmoid(a) * b, mask=mask)


@triton.jit
def _swiglu_backward_kernel(grad_ptr, a_ptr, b_ptr, grad_a_ptr, grad_b_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    grad = tl.load(grad_ptr + offsets, mask=mask).to(tl.float32)
    a = tl.load(a_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    gate = tl.sigmoid(a)
    tl.store(grad_a_ptr + offsets, grad * b * gate * (1 + a * (1 - gate)), mask=mask)
    tl.store(grad_b_ptr + offsets, grad * a * gate, mask=mask)


class FusedSwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        n = out.numel()
        _swiglu_forward_kernel[(triton.cdiv(n, 1024),)](a, b, out, n, BLOCK=1024)
        ctx.save_for_backward(a, b)
        return out

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        grad_a, grad_b = torch.empty_like(a), torch.empty_like(b)
        n = a.numel()
        _swiglu_backward_kernel[(triton.cdiv(n, 1024),)](grad.contiguous(), a, b, grad_a, grad_b, n, BLOCK=1024)
        return grad_a, grad_b


def swiglu_reference(a, b):
    """What the kernels are tested against."""
    return F.silu(a) * b


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(FusedSwiGLU.apply(self.gate(x), self.up(x)))
