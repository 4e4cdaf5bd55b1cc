"""A loss that reports its terms as numbers of Python, which in narrow dtypes are as rounded as tensors are.

kind: function
call: torch.randn(4, 6), torch.randn(4, 6), torch.randn(4, 3), torch.randn(4, 3)
"""

import torch
import torch.nn.functional as F


def f(recon, x, mu, logvar, beta=0.5):
    rec = F.mse_loss(recon, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    loss = rec + beta * kl
    logs = {"loss": loss.item(), "rec": float(rec)}
    logs["kl"] = kl.item()
    return loss, logs
