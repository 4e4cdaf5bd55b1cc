"""Fourier layers: filtering in frequency space, a power spectrum with a window, a complex product.

call: torch.randn(3, 16)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(9, dtype=torch.cfloat) * 0.3)
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x):
        spectrum = torch.fft.rfft(x, norm="ortho")
        y = torch.fft.irfft(spectrum * self.filter, n=16, norm="ortho")
        power = torch.fft.rfft(x * self.window).abs().pow(2) / self.window.pow(2).sum()
        shifted = torch.fft.fftshift(torch.fft.fft(x, dim=-1), dim=-1)
        return y, torch.log(power + 1e-6), shifted.real, shifted.conj().imag
