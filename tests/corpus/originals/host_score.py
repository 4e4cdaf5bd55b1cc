"""A score that NumPy computes of a prediction and a target, and the parts that were not padded.

kind: function
call: logits=torch.randn(2, 3, 6), target=torch.randint(0, 2, (2, 3, 6)), lengths=torch.tensor([6, 4])
"""

import torch


def f(logits, target, lengths, smooth=1e-5):
    held = (torch.sigmoid(logits) > 0.5).cpu().numpy()
    wanted = (target > 0).cpu().numpy()
    score = ((held & wanted).sum() + smooth) / ((held | wanted).sum() + smooth)
    rows = [row[:, :length].reshape(-1).detach().cpu().numpy() for row, length in zip(logits, lengths)]
    return score, rows
