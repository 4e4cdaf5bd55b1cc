"""A loss over elements that a mask chooses, booleans or weights, with a choice of distance.

kind: function
call: torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 6) > 0.4
call: torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 6) > 0.4, kind="huber"
call: torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 6) > 0.4, kind="log_cosh"
"""

import torch


def f(prediction: torch.Tensor, target: torch.Tensor, mask: torch.Tensor, kind: str = "square", delta: float = 1.0) -> torch.Tensor:
    error = prediction - target
    if kind == "square":
        loss = error**2
    elif kind == "huber":
        size = error.abs()
        loss = torch.where(size < delta, 0.5 * error**2, delta * (size - 0.5 * delta))
    elif kind == "log_cosh":
        loss = error + torch.nn.functional.softplus(-2.0 * error) - 0.6931471805599453
    else:
        raise ValueError(f"unknown kind: {kind}")
    weights = mask.float()
    return (loss * weights).sum() / weights.sum().clamp(min=1.0)
