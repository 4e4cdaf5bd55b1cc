"""A recurrent layer in both directions over packed sequences, and attention over the steps of each.

call: torch.randn(3, 5, 4), torch.tensor([5, 3, 1])
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 3, batch_first=True, bidirectional=True)
        self.score = nn.Linear(6, 1)

    def forward(self, x, lengths):
        packed, h = self.rnn(pack_padded_sequence(x, lengths.cpu(), batch_first=True))
        out, _ = pad_packed_sequence(packed, batch_first=True)
        padding = torch.arange(out.shape[1]) >= lengths[:, None]
        weights = self.score(out)[..., 0].masked_fill(padding, -1e9).softmax(1)
        return (weights[..., None] * out).sum(1), out, h
