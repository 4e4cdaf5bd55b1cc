"""Samples are mixed and rows dropped by numbers of NumPy, and a window is cut out where Python says.

call: torch.randn(4, 6, 5)
"""

import random

import numpy as np
import torch
from torch import nn


class M(nn.Module):
    def __init__(self, alpha=0.4, keep=0.7, length=3):
        super().__init__()
        self.fc = nn.Linear(5, 5)
        self.alpha = alpha
        self.keep = keep
        self.length = length

    def forward(self, x):
        x = torch.tanh(self.fc(x))
        if not self.training:
            return x[:, : self.length]
        lam = np.random.beta(self.alpha, self.alpha)
        x = lam * x + (1 - lam) * x[np.random.permutation(x.shape[0])]
        mask = np.random.binomial(n=1, p=self.keep, size=(x.shape[0], 1, x.shape[2]))
        x = x * torch.from_numpy(mask).to(x.dtype) / self.keep
        start = random.randint(0, x.shape[1] - self.length)
        return x[:, start : start + self.length]
