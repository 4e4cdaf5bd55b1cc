"""A Mamba block in the style of the published one: its fused scan where the package is installed, a loop where it is not."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
except ImportError:
    selective_scan_fn = None


def selective_scan_ref(u, delta, A, B, C, D, z):
    """(batch, dim, length) and (batch, state, length), one step after the other."""
    delta = F.softplus(delta)
    x = A.new_zeros((u.shape[0], *A.shape))
    ys = []
    for i in range(u.shape[2]):
        x = torch.exp(delta[:, :, i, None] * A) * x + (delta[:, :, i] * u[:, :, i])[..., None] * B[:, None, :, i]
        ys.append(torch.einsum("bdn,bn->bd", x, C[:, :, i]))
    y = torch.stack(ys, dim=2) + u * D[:, None]
    return y * F.silu(z)


class Mamba(nn.Module):
    def __init__(self, d_model, d_state=4, d_conv=4, expand=2):
        super().__init__()
        self.d_state, self.d_conv = d_state, d_conv
        self.d_inner = expand * d_model
        self.dt_rank = math.ceil(d_model / 16)
        self.in_proj = nn.Linear(d_model, self.d_inner * 2, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, d_conv, groups=self.d_inner, padding=d_conv - 1)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + d_state * 2, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float().repeat(self.d_inner, 1)))
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, hidden_states):
        length = hidden_states.shape[1]
        x, z = self.in_proj(hidden_states).transpose(1, 2).chunk(2, dim=1)
        x = F.silu(self.conv1d(x)[..., :length])
        dt, B, C = torch.split(self.x_proj(x.transpose(1, 2)), [self.dt_rank, self.d_state, self.d_state], dim=-1)
        dt = self.dt_proj(dt).transpose(1, 2)
        B, C = B.transpose(1, 2).contiguous(), C.transpose(1, 2).contiguous()
        A = -torch.exp(self.A_log.float())
        if selective_scan_fn is not None:
            y = selective_scan_fn(x, dt, A, B, C, self.D.float(), z=z, delta_bias=None, delta_softplus=True)
        else:
            y = selective_scan_ref(x, dt, A, B, C, self.D.float(), z)
        return self.out_proj(y.transpose(1, 2))


class Block(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.mixer = Mamba(d_model)

    def forward(self, x):
        return x + self.mixer(self.norm(x))
