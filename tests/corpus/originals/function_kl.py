"""The divergence of a Gaussian from the standard one, with reductions by name.

kind: function
call: torch.randn(3, 5), torch.randn(3, 5)
"""

import torch


def f(mean, log_variance, reduction="batchmean", free_bits=0.0):
    kl = 0.5 * (mean.pow(2) + log_variance.exp() - 1 - log_variance)
    kl = torch.clamp(kl, min=free_bits)
    if reduction == "batchmean":
        return kl.sum() / mean.size(0)
    if reduction == "mean":
        return kl.mean()
    if reduction == "none":
        return kl
    raise ValueError(reduction)
