"""Published figures of TPU chips, and the topologies that are made of them.

Sources, read in November 2026 (all figures are per chip): the page in `source`; int8 of v5p is from the announcement "Introducing Cloud TPU v5p".
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

DOCS = "https://docs.cloud.google.com/tpu/docs"


class TopologyError(ValueError):
    """A topology that cannot be compiled for; one line that says what is possible."""


@dataclass(frozen=True)
class Chip:
    """One generation. Peaks are operations a second; `bandwidth` is bytes a second; `hbm` is in bytes.

    `int8` is None where no figure is published (TPU7x: 4,614 TFLOPs in fp8). `axes` is how many axes a topology has; `source` is the page.
    """

    name: str
    hbm: int
    bandwidth: float
    bf16: float
    int8: float | None
    axes: int
    source: str


CHIPS = (
    Chip("v4", 32 * 2**30, 1200e9, 275e12, 275e12, 3, f"{DOCS}/v4"),
    Chip("v5e", 16 * 2**30, 819e9, 197e12, 393e12, 2, f"{DOCS}/v5e"),
    Chip("v5p", 95 * 2**30, 2765e9, 459e12, 918e12, 3, f"{DOCS}/v5p"),
    Chip("v6e", 32 * 2**30, 1600e9, 918e12, 1836e12, 2, f"{DOCS}/v6e"),
    Chip("tpu7x", 192 * 2**30, 7380e9, 2307e12, None, 3, f"{DOCS}/tpu7x"),
)


@dataclass(frozen=True)
class Topology:
    """Chips of one generation in a grid: `v5e:4x4`, or `tpu7x:4x4x1`."""

    chip: Chip
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """As the compiler spells it."""
        return f"{self.chip.name}:{'x'.join(map(str, self.shape))}"

    @property
    def chips(self) -> int:
        """How many there are."""
        return math.prod(self.shape)

    @property
    def host(self) -> tuple[int, int, int] | None:
        """The chips of one host, where the compiler's own answer (2x2x1) does not divide the grid."""
        wide = (*self.shape, 1, 1)[:3]
        if wide[0] % 2 == 0 and wide[1] % 2 == 0:
            return None
        return (2 if wide[0] % 2 == 0 else 1, 2 if wide[1] % 2 == 0 else 1, 1)


def topology(text: str) -> Topology:
    """`CHIP:SHAPE`, such as `v5e:4x4`; ones that are left out at the end (`tpu7x:4x4`) are added. Raises `TopologyError`."""
    match = re.fullmatch(r"([a-z0-9]+):(\d+(?:x\d+){0,2})", text.strip().lower())
    chip = next((chip for chip in CHIPS if match and chip.name == match[1]), None)
    if not match or chip is None:
        raise TopologyError(f"{text!r} is no topology: write CHIP:SHAPE with one of {', '.join(c.name for c in CHIPS)}, such as v5e:4x4")
    shape = tuple(int(part) for part in match[2].split("x"))
    shape = (*shape, *(1 for _ in range(chip.axes - len(shape))))
    if len(shape) > chip.axes or 0 in shape:
        raise TopologyError(f"{text!r} is no topology of {chip.name}, which has {chip.axes} axes, such as {chip.name}:4x4")
    return Topology(chip, shape)
