"""The normalised temperature-scaled cross entropy of two views.

kind: function
call: torch.randn(4, 6), torch.randn(4, 6)
"""

import torch
import torch.nn.functional as F


def f(first, second, temperature=0.5, eps=1e-8):
    count = first.size(0)
    both = torch.cat([first, second])
    both = both / both.norm(dim=1, keepdim=True).clamp(min=eps)
    scores = both @ both.t() / temperature
    scores = scores.masked_fill(torch.eye(2 * count, dtype=torch.bool), float("-inf"))
    targets = torch.cat([torch.arange(count, 2 * count), torch.arange(count)])
    return F.cross_entropy(scores, targets)
