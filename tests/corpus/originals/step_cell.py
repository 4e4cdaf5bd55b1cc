"""A recurrent cell with a state that the caller may keep, and steps of a mask that holds the state.

init: 4, 6
call: torch.randn(3, 7, 4)
call: torch.randn(3, 7, 4), torch.randn(3, 6)
call: torch.randn(3, 7, 4), None, torch.rand(3, 7) > 0.4
"""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, width, hidden, leak=0.9):
        super().__init__()
        self.hidden = hidden
        self.leak = leak
        self.inner = nn.Linear(width, 2 * hidden)
        self.again = nn.Linear(hidden, 2 * hidden, bias=False)

    def forward(self, x, state=None, mask=None):
        if state is None:
            state = torch.zeros(x.shape[0], self.hidden, dtype=x.dtype)
        outputs = []
        for t in range(x.shape[1]):
            value, gate = (self.inner(x[:, t]) + self.again(state)).chunk(2, dim=-1)
            gate = torch.sigmoid(gate.float()).to(x.dtype)
            new = self.leak * gate * state + (1 - gate) * torch.tanh(value)
            if mask is not None:
                keep = mask[:, t, None]
                new = torch.where(keep.bool(), new, state)
            state = new
            outputs.append(state)
        return torch.stack(outputs, dim=1), state
