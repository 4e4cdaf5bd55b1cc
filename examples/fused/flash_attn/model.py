"""A decoder in the style of code written around FlashAttention 2: packed attention, sliding windows, rotary embedding."""

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    from flash_attn import flash_attn_func, flash_attn_qkvpacked_func
    from flash_attn.layers.rotary import apply_rotary_emb
except ImportError:
    flash_attn_func, flash_attn_qkvpacked_func, apply_rotary_emb = None, None, None


def rotate(x, cos, sin):
    """(batch, length, heads, size) with the halves of each head turned."""
    half = cos.shape[-1]
    cos, sin = cos[:, None, :], sin[:, None, :]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)


class SelfAttention(nn.Module):
    """Causal attention over one packed projection."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.Wqkv = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.Wqkv(x).view(b, t, 3, self.heads, d // self.heads)
        if flash_attn_qkvpacked_func is not None:
            y = flash_attn_qkvpacked_func(qkv, causal=True)
        else:
            q, k, v = (x.transpose(1, 2) for x in qkv.unbind(2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        return self.out_proj(y.reshape(b, t, d))


class LocalAttention(nn.Module):
    """Grouped heads with rotary positions; each token sees itself and the `window` before it."""

    def __init__(self, dim, heads, groups, window, length=64, base=10000.0):
        super().__init__()
        self.heads, self.groups, self.window = heads, groups, window
        self.size = dim // heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.kv_proj = nn.Linear(dim, 2 * groups * self.size, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)
        rates = 1.0 / base ** (torch.arange(0, self.size, 2).float() / self.size)
        angles = torch.outer(torch.arange(length).float(), rates)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.size)
        k, v = self.kv_proj(x).view(b, t, 2, self.groups, self.size).unbind(2)
        cos, sin = self.cos[:t], self.sin[:t]
        if apply_rotary_emb is not None:
            q, k = apply_rotary_emb(q, cos, sin), apply_rotary_emb(k, cos, sin)
        else:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if flash_attn_func is not None:
            y = flash_attn_func(q, k, v, causal=True, window_size=(self.window, 0))
        else:
            each = self.heads // self.groups
            q, k, v = q.transpose(1, 2), k.repeat_interleave(each, 2).transpose(1, 2), v.repeat_interleave(each, 2).transpose(1, 2)
            distance = torch.arange(t, device=x.device)[:, None] - torch.arange(t, device=x.device)
            seen = (distance >= 0) & (distance <= self.window)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2)
        return self.out_proj(y.reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, groups, window):
        super().__init__()
        self.ln1, self.ln2, self.ln3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.full = SelfAttention(dim, heads)
        self.local = LocalAttention(dim, heads, groups, window)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = x + self.full(self.ln1(x))
        x = x + self.local(self.ln2(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln3(x)), approximate="tanh"))
