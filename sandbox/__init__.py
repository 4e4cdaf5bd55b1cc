"""Where untrusted code runs. `open_sandbox` picks a backend; each is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.sandbox.base import Device, Sandbox, SandboxError, SandboxUnavailable

__all__ = ["BACKENDS", "Device", "Sandbox", "SandboxError", "SandboxUnavailable", "missing", "open_sandbox"]


class Backend(NamedTuple):
    """Where a backend lives. Its module has `missing() -> str` ("" where it can be used here, else the reason) and the class."""

    module: str
    cls: str


BACKENDS: dict[str, Backend] = {
    "docker": Backend("migrate_agent.sandbox.docker", "DockerSandbox"),
    "bubblewrap": Backend("migrate_agent.sandbox.bubblewrap", "BubblewrapSandbox"),
    "process": Backend("migrate_agent.sandbox.process", "ProcessSandbox"),
}
"""Kind → backend, best protection first: the order in which `auto` tries them."""

UNPROTECTED = (
    "warning: running code in a plain process with limits on time, memory and files, but WITHOUT protection of your network, "
    "of any file or process that you can reach, and of the original's outputs against a hostile candidate; "
    "for a real sandbox install bubblewrap, or start a Docker engine and run `migrate-agent sandbox build`"
)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def missing(kind: str, device: Device = "cpu") -> str:
    """Why this kind cannot be used here, in one line; "" where it can. Raises `SandboxError` for an unknown kind."""
    reason = str(_module(kind).missing())
    if reason or device == "cpu":
        return reason
    from migrate_agent.sandbox.view import gpus

    return "" if gpus() else "there is no GPU on this machine (no /dev/nvidia0)"


def _module(kind: str) -> Any:
    if kind not in BACKENDS:
        raise SandboxError(f"unknown sandbox {kind!r}: choose from auto, {', '.join(BACKENDS)}")
    return importlib.import_module(BACKENDS[kind].module)


def open_sandbox(
    kind: str = "auto", *, threads: int = 1, folder: Path | None = None, device: Device = "cpu", warn: Callable[[str], None] = _say
) -> Sandbox:
    """A sandbox of this kind; `auto` takes the best one that works here, and calls `warn` where that is only a plain process.

    `threads` is what the numeric libraries inside may use each (1: reproducible to the bit); `folder` is where the jobs' folders are made
    (default: the system's temporary folder); `device` `gpu` lets jobs use the machine's accelerators. Raises `SandboxUnavailable` where a
    kind that was asked for cannot be used, `SandboxError` for an unknown kind.
    """
    kinds = tuple(BACKENDS) if kind == "auto" else (kind,)
    reasons = {name: missing(name, device) for name in kinds}
    chosen = next((name for name in kinds if not reasons[name]), "")
    if not chosen:
        raise SandboxUnavailable("; ".join(f"sandbox {name} cannot be used: {reason}" for name, reason in reasons.items()))
    if kind == "auto" and chosen == "process":
        warn(UNPROTECTED)
    sandbox: Sandbox = getattr(_module(chosen), BACKENDS[chosen].cls)(threads=threads, folder=folder, device=device)
    return sandbox
