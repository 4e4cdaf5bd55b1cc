"""What a run loads again: on the original's side the loads that change nothing, on the rewrite's the files that it reads. Runs inside the sandbox.

A script that ends with `model.load_state_dict(torch.load("best.pt"))` computes the same without that line, where the last weights are the best.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from migrate_agent.tools.programs.judge.running import files_in, is_writing


class Loads:
    """Hooks into torch that note which lines of a script load a file's weights into a module, and whether that changes some."""

    def __init__(self, script: Path) -> None:
        self._script = str(script)
        self._from_files: dict[int, Any] = {}
        self._changed: dict[int, bool] = {}

    def install(self) -> None:
        """Watch `torch.load` and `Module.load_state_dict`."""
        import torch

        module: Any = torch.nn.Module
        own_load, own_load_state = torch.load, module.load_state_dict

        def load(*args: Any, **kwargs: Any) -> Any:
            tree = own_load(*args, **kwargs)
            todo = [tree]
            while todo:
                node = todo.pop()
                if isinstance(node, dict):
                    self._from_files[id(node)] = node
                    todo += node.values()
            return tree

        def load_state_dict(loaded: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
            if id(state) not in self._from_files:
                return own_load_state(loaded, state, *args, **kwargs)
            before = {name: value.clone() for name, value in loaded.state_dict().items() if isinstance(value, torch.Tensor)}
            result = own_load_state(loaded, state, *args, **kwargs)
            after = loaded.state_dict()
            self._note(any(name not in after or not torch.equal(value, after[name]) for name, value in before.items()))
            return result

        torch.load, module.load_state_dict = load, load_state_dict

    def _note(self, changed: bool) -> None:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._script:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            self._changed[frame.f_lineno] = self._changed.get(frame.f_lineno, False) or changed

    def rows(self) -> list[list[Any]]:
        """Lines that load weights, each with whether some changed."""
        return [[line, changed] for line, changed in sorted(self._changed.items())]


@contextmanager
def reading(work: Path, given: frozenset[str]) -> Iterator[set[str]]:
    """A context that notes the files of a folder that are read in it and stay there, without those that were given."""
    read: set[str] = set()
    active = [True]

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not active[0]:
            return
        path, mode, flags = arguments
        if isinstance(path, (str, bytes, os.PathLike)) and not is_writing(mode, flags) and os.path.isfile(path):
            name = os.path.relpath(os.fsdecode(path), work)
            if not name.startswith("..") and name not in given and "__pycache__" not in name:
                read.add(name)

    sys.addaudithook(hear)
    try:
        yield read
    finally:
        active[0] = False
        # While it writes, orbax reads what it wrote, in folders with another name.
        read &= files_in(work)
