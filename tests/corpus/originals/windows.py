"""Windows of an image as in Swin: partition, relative position bias, shift, and back; patches and a square einsum.

call: torch.randn(2, 8, 8, 4)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=4, w=4):
        super().__init__()
        self.w = w
        self.bias_table = nn.Parameter(torch.randn((2 * w - 1) ** 2))
        coords = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(w), indexing="ij")).flatten(1)
        relative = coords[:, :, None] - coords[:, None, :] + w - 1
        self.register_buffer("index", relative[0] * (2 * w - 1) + relative[1])
        self.mix = nn.Parameter(torch.randn(d, d))

    def forward(self, x):
        B, H, W, C = x.shape
        w = self.w
        x = torch.roll(x, (-w // 2, -w // 2), (1, 2))
        win = x.view(B, H // w, w, W // w, w, C).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, C)
        bias = self.bias_table[self.index.view(-1)].view(w * w, w * w)
        att = (win @ win.transpose(1, 2) * C**-0.5 + bias).softmax(-1)
        win = torch.einsum("bij,bjc,cd->bid", att, win, self.mix)
        x = win.view(B, H // w, W // w, w, w, C).permute(0, 1, 3, 2, 4, 5).reshape(B, H, W, C)
        return torch.roll(x, (w // 2, w // 2), (1, 2))
