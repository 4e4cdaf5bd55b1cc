"""Whether a module of a network is among the callers of what runs."""

from __future__ import annotations

import sys
from types import FrameType

import torch

TRANSFORMS = "torchvision.transforms"
"""Where transforms of data lie: they are modules too, and draw from torch's stream on both sides."""


def drawn_by_a_module(constructing: bool = False) -> bool:
    """Whether the innermost module whose method is among the callers is one of a network; its constructor counts only with `constructing`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if (constructing or frame.f_code.co_name != "__init__") and isinstance(owner, torch.nn.Module):
            return not type(owner).__module__.startswith(TRANSFORMS)
        frame = frame.f_back
    return False
