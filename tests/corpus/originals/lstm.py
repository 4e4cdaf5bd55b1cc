"""One LSTM layer, batch first, and a linear head over its last state.

call: torch.randn(3, 5, 4)
"""

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        out, (h, c) = self.rnn(x)
        return self.head(out), h, c
