"""Cross entropy with label smoothing and an ignored class.

kind: function
call: torch.randn(6, 5), torch.tensor([0, 3, 4, 1, 2, 2])
call: torch.randn(6, 5), torch.tensor([0, 3, 9, 1, 9, 2]), ignore_index=9
"""

import torch
import torch.nn.functional as F


def f(logits: torch.Tensor, target: torch.Tensor, smoothing: float = 0.1, ignore_index: int = -100) -> torch.Tensor:
    keep = target != ignore_index
    logs = F.log_softmax(logits, dim=-1)
    chosen = logs.gather(1, torch.where(keep, target, 0).unsqueeze(1)).squeeze(1)
    loss = -(1 - smoothing) * chosen - smoothing * logs.mean(dim=-1)
    return (loss * keep).sum() / keep.sum().clamp(min=1)
