"""The nearest points of each point, by squared distances that are expanded: in a corner of the domain many are equally far.

kind: function
call: torch.randn(2, 3, 12), 4
"""

import torch


def f(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    squares = torch.sum(x**2, dim=1, keepdim=True)
    return (-squares - inner - squares.transpose(2, 1)).topk(k=k, dim=-1)[1]
