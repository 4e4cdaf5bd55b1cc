"""Whether a module is among the callers of what runs."""

from __future__ import annotations

import sys
from types import FrameType

import torch


def drawn_by_a_module(constructing: bool = False) -> bool:
    """Whether a method of a module is among the callers; its constructor counts only with `constructing`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if (constructing or frame.f_code.co_name != "__init__") and isinstance(frame.f_locals.get("self"), torch.nn.Module):
            return True
        frame = frame.f_back
    return False
