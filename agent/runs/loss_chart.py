"""Two loss curves beside each other, as text."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH = 28


def loss_chart(torch: Sequence[float], jax: Sequence[float], rows: int = 30) -> list[str]:
    """A line for each step (every n-th, where there are more than `rows`): both losses, a bar each, and their difference."""
    pairs = list(zip(torch, jax, strict=False))
    finite = [value for pair in pairs for value in pair if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    every = max(1, -(-len(pairs) // rows))
    head = f"{'step':>5}  {'torch':>10} {'':{WIDTH}}  {'jax':>10} {'':{WIDTH}}  difference"
    return [head, *(_line(step, *pair, low, high) for step, pair in enumerate(pairs) if step % every == 0 or step == len(pairs) - 1)]


def _line(step: int, torch: float, jax: float, low: float, high: float) -> str:
    sides = "  ".join(f"{value:10.6f} {_bar(value, low, high):{WIDTH}}" for value in (torch, jax))
    return f"{step:5}  {sides}  {jax - torch:+.1e}"


def _bar(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "?"
    return "#" * (1 + round((WIDTH - 1) * (value - low) / ((high - low) or 1.0)))
