"""Who does the tasks of a command: this process, with `LocalWorkers`, or the nodes of a cluster, with `ray_workers.RayWorkers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Tell = Callable[[str], None]


class Task(Protocol):
    """Work that depends on nothing but what it holds and the folders that it names: done again, elsewhere too, it gives the same."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def trees(self) -> Sequence[Path]:
        """The folders that hold the files that it reads. They do not change while tasks name them."""
        ...

    def run(self, place: Any, folder: Path, tell: Tell) -> Any:
        """Do it, with what `place` has open. What `folder` holds afterwards belongs to the result. `tell` is called with the name of each stage."""
        ...

    def keeps(self, result: Any) -> bool:
        """Whether somebody looks at what lies in the folder."""
        ...


class Workers(Protocol):
    """Does tasks for several threads at the same time."""

    @property
    def capacity(self) -> int:
        """Tasks that are done at the same time."""
        ...

    @property
    def remote(self) -> bool:
        """Whether they are done on other machines."""
        ...

    def call(self, task: Task, folder: Path, tell: Tell) -> Any:
        """The task's result; what it left lies in `folder`. `tell` may raise, which ends the task at its next stage. Raises what the task raises."""
        ...

    def close(self) -> None:
        """End what runs."""
        ...


@dataclass(frozen=True)
class LocalWorkers:
    """The calling thread does each task itself, with what is open in this process."""

    place: Any
    capacity: int = 1
    remote: bool = False

    def call(self, task: Task, folder: Path, tell: Tell) -> Any:
        """As the task does it."""
        return task.run(self.place, folder, tell)

    def close(self) -> None:
        """Close what is open."""
        self.place.close()
