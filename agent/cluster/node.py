"""What a node of a cluster does: one task, in a folder of its own, with what its process has open from earlier tasks."""

from __future__ import annotations

import atexit
import getpass
import pickle
import platform
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from migrate_agent.agent.cluster.trees import dumps, loads, pack, unpacked
from migrate_agent.tools.verdict_cache import verifier_version

PACKAGES = ("torch", "jax", "jaxlib", "flax", "optax", "numpy")
"""A verdict may depend on these."""


class NodeDiffersError(Exception):
    """A node has other versions than the driver, so that its verdicts may be others. One line."""


class DroppedError(Exception):
    """Nobody waits for the task any more."""


@dataclass(frozen=True)
class Done:
    """What came of a task: its result or its error, pickled, and the files that it left."""

    result: bytes = b""
    error: Exception | None = None
    files: bytes = b""


class Board:
    """Where all nodes say what they do, and hear what nobody waits for any more: an actor."""

    def __init__(self) -> None:
        self.stages: dict[int, str] = {}
        self.dropped: set[int] = set()

    def tell(self, number: int, text: str) -> bool:
        """Note the stage of a task. Gives whether somebody waits for it."""
        self.stages[number] = text
        return number not in self.dropped

    def stage(self, number: int) -> str:
        """The stage of a task, "" before it began."""
        return self.stages.get(number, "")

    def drop(self, number: int) -> None:
        """Nobody waits for a task any more."""
        self.dropped.add(number)


_PLACES: dict[bytes, Any] = {}


def work(order: bytes, opener: bytes, versions: Mapping[str, str], board: Any, number: int, *contents: bytes) -> Done:
    """Do a task. `contents` are the packed folders that it reads; `opener` makes what it works with."""
    import ray

    node = socket.gethostname()

    def tell(text: str) -> None:
        if not ray.get(board.tell.remote(number, f"{text} on {node}")):
            raise DroppedError

    try:
        check_versions(versions, node)
        tell("begun")
        home = Path(tempfile.gettempdir(), f"migrate-agent-{getpass.getuser()}")
        trees = [unpacked(content, home) for content in contents]
        return _done(order, opener, trees, tell)
    except Exception as error:
        return Done(error=_portable(error))


def _done(order: bytes, opener: bytes, trees: Sequence[Path], tell: Callable[[str], None]) -> Done:
    task = loads(order, trees)
    # Each attempt has a folder of its own: one that a killed process left half-written is never looked at.
    with tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch:
        folder = Path(scratch)
        result = task.run(_place(opener), folder, tell)
        return Done(dumps(result, [*trees, folder]), None, pack(folder) if task.keeps(result) else b"")


def _place(opener: bytes) -> Any:
    if opener not in _PLACES:
        _PLACES[opener] = opened = pickle.loads(opener)()
        atexit.register(opened.close)
    return _PLACES[opener]


def _portable(error: Exception) -> Exception:
    """The error, or its words where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def versions_here() -> dict[str, str]:
    """What verdicts depend on, by name: Python, the machine's kind, packages and this program."""
    packages = {name: _version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "machine": platform.machine(), **packages, "verifier": verifier_version()[:12]}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def check_versions(expected: Mapping[str, str], node: str) -> None:
    """Raises `NodeDiffersError`."""
    here = versions_here()
    other = [f"{name} {here[name]} and not {value}" for name, value in expected.items() if here[name] != value]
    if other:
        raise NodeDiffersError(f"node {node} ({sys.executable}) has {', '.join(other)}: give all nodes the environment of the driver")
