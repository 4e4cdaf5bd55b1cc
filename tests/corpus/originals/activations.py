"""Many activations of one input, some with parameters.

call: torch.randn(4, 30) * 3
"""

import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.prelu = nn.PReLU(init=0.3)

    def forward(self, x):
        return (
            x.clamp(-2.0, 2.5),
            F.hardswish(x),
            F.hardsigmoid(x),
            F.softplus(x, beta=2.0),
            F.elu(x, 0.5),
            F.celu(x, 0.5),
            F.selu(x),
            F.mish(x),
            F.softshrink(x, 0.4),
            F.hardshrink(x, 0.4),
            F.logsigmoid(x),
            F.gelu(x, approximate="tanh"),
            F.glu(x, -1),
            self.prelu(x),
            F.threshold(x, 0.1, -1.0),
            F.tanhshrink(x),
        )
