"""The shares of rows whose label is among the k highest scores.

kind: function
call: torch.randn(6, 5), torch.tensor([0, 3, 4, 1, 2, 2]), (1, 3)
"""

import torch


def f(output, target, topk=(1,)):
    with torch.no_grad():
        _, best = output.topk(max(topk), 1, True, True)
        right = best.t().eq(target.view(1, -1))
        return [right[:k].reshape(-1).float().sum(0, keepdim=True) * (100.0 / target.size(0)) for k in topk]
