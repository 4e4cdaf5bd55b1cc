"""The soft dice loss of logits, with three reductions.

kind: function
call: torch.randn(2, 3, 4, 4), torch.randint(0, 2, (2, 3, 4, 4))
"""

import torch


def f(pred, target, smooth=1.0, reduction="mean"):
    pred = torch.sigmoid(pred).flatten(2)
    target = target.flatten(2).float()
    inter = (pred * target).sum(-1)
    loss = 1 - (2 * inter + smooth) / (pred.sum(-1) + target.sum(-1) + smooth)
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss
