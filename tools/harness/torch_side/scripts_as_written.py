"""Runs what `torch.jit` would compile as it is written. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.jit import _state


class ScriptModule(torch.nn.Module):
    """A module whose methods are Python, in the place of torch's own base class of this name."""


def script_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return function


def run_scripts_as_written() -> None:
    """From now on, leave functions and classes that files hand to `torch.jit` as they are.

    What it compiles has no signature, and no lines that could be seen to run. Files that are imported later derive from this module's
    `ScriptModule`, as they derive from `torch.nn.Module` where `PYTORCH_JIT=0` is set (https://docs.pytorch.org/docs/stable/jit.html#disable-jit-for-debugging).
    """
    _state.disable()
    vars(torch.jit).update(ScriptModule=ScriptModule, script_method=script_method)
