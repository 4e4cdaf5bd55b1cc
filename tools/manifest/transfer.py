"""How long data takes over a network, and what leaves of it after compression."""

from __future__ import annotations

from typing import NamedTuple

SAVED: dict[str, tuple[float, float]] = {"text": (0.30, 0.50), "images": (0.10, 0.20), "none": (0.0, 0.0)}
"""Content → the part that compression takes away, least and most, as the project's migration guide has it."""


class Transfer(NamedTuple):
    """`seconds` and `cost` (in the currency of the price; None without one): the least and the most."""

    seconds: tuple[float, float]
    cost: tuple[float, float] | None


def estimate(size: int, mbps: float, streams: int = 1, content: str = "none", price: float | None = None) -> Transfer:
    """Of `size` bytes at `mbps` megabits a second for each of `streams`, as long as the network has room for all; `price` is that of 10⁹ bytes."""
    least, most = SAVED[content]
    sizes = (size * (1 - most), size * (1 - least))
    seconds = (sizes[0] * 8 / (mbps * 1e6 * streams), sizes[1] * 8 / (mbps * 1e6 * streams))
    return Transfer(seconds, None if price is None else (sizes[0] / 1e9 * price, sizes[1] / 1e9 * price))


def duration(seconds: float) -> str:
    """For people: `4.4 hours`, `18.5 days`."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} seconds"
