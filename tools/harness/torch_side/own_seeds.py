"""Seeds that a constructor gives torch's stream itself: each of several constructions draws other numbers. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

APART = 1_000_003
"""Difference between the seeds of two constructions: larger than those that code writes out."""


@contextmanager
def varied_seeds(number: int) -> Iterator[None]:
    """Let `torch.manual_seed(seed)` seed the stream of construction `number`: what is drawn has a distribution then, of which one seed shows one value."""
    seeded = torch.manual_seed
    torch.manual_seed = lambda seed: seeded(int(seed) + APART * (number + 1))
    try:
        yield
    finally:
        torch.manual_seed = seeded
