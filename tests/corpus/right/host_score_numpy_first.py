"""All is NumPy's from the first line on.

original: host_score
family: other but equal formulas
"""

import jax
import numpy as np


def f(logits, target, lengths, smooth=1e-5):
    held, wanted = np.asarray(jax.nn.sigmoid(logits)) > 0.5, np.asarray(target) > 0
    score = (np.logical_and(held, wanted).sum() + smooth) / (np.logical_or(held, wanted).sum() + smooth)
    values, sizes = np.asarray(logits), np.asarray(lengths)
    return score, [row[:, :size].ravel() for row, size in zip(values, sizes)]
