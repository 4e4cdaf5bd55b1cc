"""The arrays become NumPy's where the original's do.

original: host_score
family: plain port
"""

import jax
import numpy as np


def f(logits, target, lengths, smooth=1e-5):
    held = np.asarray(jax.nn.sigmoid(logits) > 0.5)
    wanted = np.asarray(target > 0)
    score = ((held & wanted).sum() + smooth) / ((held | wanted).sum() + smooth)
    rows = [np.asarray(row[:, :length].reshape(-1)) for row, length in zip(logits, lengths)]
    return score, rows
