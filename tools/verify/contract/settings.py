"""What a verification may be asked for beside its verdicts. Nothing here widens what is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Timed = Literal["", "eager", "compile"]
Unreached = Literal["", "stub", "keep"]
"""What becomes of lines of the port that no compared call ran: they stay as they are, and the port is unverified; whoever commits it puts stubs in
their place; or they are kept, and told of."""


@dataclass(frozen=True)
class Performance:
    """`against`: what is timed beside the candidate: nothing, torch's eager mode, or `torch.compile` too (which takes a C++ compiler and time).

    `max_slowdown`: how many times as long as torch's quickest the candidate may take; 0 for no limit.
    """

    against: Timed = ""
    max_slowdown: float = 0.0


NOT_TIMED = Performance()


@dataclass(frozen=True)
class Portable:
    """`topologies`: what forward pass and training step must compile for, such as `v5e:4x4`; none for no such check.

    `batch` 0 is the example's; one that a topology's devices cannot share is rounded up. `dtype` `bf16` stands in the place of float32.
    """

    topologies: tuple[str, ...] = ()
    batch: int = 0
    dtype: Literal["", "bf16"] = ""


NOT_COMPILED = Portable()
