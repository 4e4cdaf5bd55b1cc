"""Where a run keeps what it needs: `<git common dir>/migrate-agent/`, so that the user's working tree is never touched.

```
migrate-agent/
  lock                      held by the process that works
  recording/                what `migrate-agent record` captured last
  runs/<id>/                settings.json, config/, original/ (the base commit), inventory.json, plan.json, recorded/,
                            checkpoints.sqlite, units/<n>-<name>/ (`loop.unit_work`), report.json, finished
  worktrees/<id>/           the branch under work; removed when the run ends, so that the branch can be checked out
```
"""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from migrate_agent.agent.config.errors import UsageError

KEPT = 3
"""Earlier runs whose evidence is kept."""


@dataclass(frozen=True)
class RunFolder:
    """The paths of one run."""

    home: Path
    id: str

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self.home / "runs" / self.id

    @property
    def worktree(self) -> Path:
        """The git worktree of the run's branch."""
        return self.home / "worktrees" / self.id

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def unit(self, position: int, name: str) -> Path:
        """The folder of the unit at this place of the plan."""
        return self.path / "units" / f"{position:04d}-{re.sub(r'[^A-Za-z0-9_.]', '_', name)[:80]}"

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return (self / "finished").exists()


def home_of(common: Path) -> Path:
    """The folder of everything that is ours, beside the repository's git data."""
    return common / "migrate-agent"


def new_run(home: Path, base: str) -> RunFolder:
    """A fresh folder, named so that later runs sort after earlier ones."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    folder = RunFolder(home, f"{stamp}-{base[:7]}")
    folder.path.mkdir(parents=True)
    return folder


def runs(home: Path) -> list[RunFolder]:
    """All runs that got as far as having settings, oldest first."""
    return [RunFolder(home, path.parent.name) for path in sorted(home.glob("runs/*/settings.json"))]


def clear_old(home: Path) -> None:
    """Make room: the worktrees of all runs go, runs that never began, and all but the last few others."""
    shutil.rmtree(home / "worktrees", ignore_errors=True)
    recent = {run.id for run in runs(home)[-KEPT:]}
    for path in home.glob("runs/*"):
        if path.name not in recent:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the repository for one working process; the kernel lets go of it when that process dies, however it dies.

    Raises `UsageError` where another one holds it.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("a+") as stream:
        # A lock of the kernel and no file with a process id: it cannot be left behind by a process that was killed.
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                "another migrate-agent works on this repository: wait for it, or stop it and use `migrate-agent resume`"
            ) from None
        yield
