"""What both sides of the sandbox and the judge agree on: names of files, and the trace that a run leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TRACE = "trace.json"
TENSORS = "tensors.safetensors"
MOST_TENSOR_BYTES = 256 * 2**20


class StopProgramError(BaseException):
    """Ends a program that has made all the steps that are compared. Not an `Exception`, so that no handler of the program takes it."""


class Trace:
    """What one run of a program did, in order.

    `events` are rows with a `kind`: `optimizer`, `backward` (`loss`), `step` (`optimizer`, `rates`), `clip`, `zero`, `schedule`. `lines` are what
    it printed. `tensors` are arrays: `made/M/NAME` of the M-th module once it is constructed, `start/K/NAME` at the construction
    of optimizer K, `step/N/K/NAME` after step N of the program, `end/K/NAME` at its end, and `unpickled/K/NAME` of what was read last in its place.
    """

    def __init__(self, steps: int, keep: tuple[int, ...]) -> None:
        self.events: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.tensors: dict[str, Any] = {}
        self.steps, self.limit, self.keep = 0, steps, keep
        self.done = False
        self._bytes = 0

    def add(self, kind: str, **fields: Any) -> None:
        """Append an event."""
        self.events.append({"kind": kind, "line": len(self.lines), **fields})

    def store(self, prefix: str, arrays: Mapping[str, Any]) -> bool:
        """Keep arrays under a prefix where they fit into the bound; says whether they did."""
        size = sum(array.nbytes for array in arrays.values())
        if self._bytes + size > MOST_TENSOR_BYTES:
            return False
        self._bytes += size
        self.tensors |= {f"{prefix}/{name}": array for name, array in arrays.items()}
        return True

    def wants(self, step: int) -> bool:
        """Whether the parameters after this step are kept."""
        return step in self.keep or (self.limit > 0 and step == self.limit)

    def end_step(self) -> None:
        """Raise `StopProgramError` where all steps were made."""
        if self.limit and self.steps >= self.limit:
            self.done = True
            raise StopProgramError

    def write(self, output: Path, **more: Any) -> None:
        """Write the trace and its tensors."""
        from safetensors.numpy import save_file

        save_file(self.tensors, str(output / TENSORS))
        (output / TRACE).write_text(json.dumps({"events": self.events, "lines": self.lines, "steps": self.steps, **more}))


NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\bnan\b|\binf\b)")


def numbers(line: str) -> tuple[str, list[str]]:
    """A printed line without its numbers, and the numbers."""
    return NUMBER.sub("#", line), NUMBER.findall(line)


SIZE = re.compile(r"torch\.Size\(\[([\d, ]*)\]\)")
TENSOR = re.compile(r"tensor\(([^()]*?)(?:, (?:device|dtype|grad_fn|requires_grad)=[^()]*)?\)")


def plain(line: str) -> str:
    """A printed line with shapes and tensors as JAX and NumPy print them: `torch.Size([2, 3])` as `(2, 3)`, `tensor([1., 2.])` as `[1. 2.]`."""
    line = SIZE.sub(lambda match: f"({match[1]}{',' if match[1].isdecimal() else ''})", line)
    return TENSOR.sub(lambda match: match[1].replace(",", ""), line)
