"""Which samples of a batch are kept: a draw whose arguments are no arrays.

kind: function
call: (5, 40), 0.3
call: (6,), 1
"""

import torch


def f(shape, keep):
    if keep == 1:
        return torch.ones(shape, dtype=torch.bool)
    return torch.zeros(shape).float().uniform_(0, 1) < keep
