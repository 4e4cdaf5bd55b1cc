"""A bound on what a job may still allocate, below that of the sandbox: what asks for more raises an error, and the job goes on."""

from __future__ import annotations

import resource
from pathlib import Path


def bound_memory(more: int) -> None:
    """Let this process allocate `more` bytes beside what it has; nothing where the system does not tell what it has."""
    told = Path("/proc/self/statm")
    used = int(told.read_text().split()[0]) * resource.getpagesize() if told.exists() else 0
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if used:
        most = used + more
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
