"""Steps through time whose gradient is cut every twelve steps, and a memory that keeps the last forty.

init: 5
call: torch.randn(2, 4, 5)
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, d=5):
        super().__init__()
        self.step = nn.Linear(d, d)
        self.read = nn.Linear(d, d)

    def forward(self, x):
        state, states = torch.zeros_like(x[:, 0]), []
        for place in range(x.shape[1]):
            if place % 12 == 11:
                state = state.detach()
            state = torch.tanh(self.step(state) + x[:, place])
            states.append(state)
        return self.read(torch.stack(states, 1)[:, -40:].mean(1))
