"""States of earlier calls, as a list: with one, even an empty one, only the last step is taken.

call: torch.randn(2, 5, 6), [torch.randn(2, 1, 6)]
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])

    def forward(self, x, states=None):
        if states is not None:
            x = x[:, -1:]
        states = iter(states if states is not None else ())
        for layer in self.layers:
            state = next(states, None)
            x = torch.tanh(layer(x))
            if state is not None:
                x = x + state
        return x
