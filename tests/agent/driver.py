"""The real command line over scripted services, in a process of its own that dies at a chosen moment.

`python driver.py <moment> <signal> ARGS…`: the process sends itself the signal at its n-th call of a service or of git (0: never).
The number of moments is written to the file named by MOMENTS_FILE, so that a test knows how many there are.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from migrate_agent.agent.cli import guarded
from migrate_agent.agent.model.connect import connect
from migrate_agent.agent.repository import git
from migrate_agent.tests.agent import scripted


class Fuse:
    """Counts calls, and burns at one of them."""

    def __init__(self, moment: int, signal: int) -> None:
        self.left, self.signal, self.seen = moment, signal, 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with a moment before it and one after it."""

        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            self.tick()
            result = function(*arguments, **keywords)
            self.tick()
            return result

        return wrapped

    def tick(self) -> None:
        """One moment."""
        self.seen += 1
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.signal)


def main() -> int:
    """Patch the seams, run the command line."""
    fuse = Fuse(int(sys.argv[1]), int(sys.argv[2]))
    plain = scripted.services(connect=connect)
    parts: dict[str, Any] = {field.name: getattr(plain, field.name) for field in fields(plain)}
    wrapped: dict[str, Any] = {name: fuse.around(part) for name, part in parts.items() if callable(part)}
    burning = replace(plain, **wrapped)
    real = types.ModuleType("migrate_agent.agent.loop.wiring")
    real.services = lambda warn: burning  # type: ignore[attr-defined]
    sys.modules["migrate_agent.agent.loop.wiring"] = real
    git.Repository.run = fuse.around(git.Repository.run)  # type: ignore[method-assign]
    status = guarded(sys.argv[3:])
    if "MOMENTS_FILE" in os.environ:
        Path(os.environ["MOMENTS_FILE"]).write_text(str(fuse.seen))
    return status


if __name__ == "__main__":
    sys.exit(main())
