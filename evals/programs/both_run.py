"""What the two runners share. Imports neither torch nor JAX, and nothing of the tool."""

from __future__ import annotations

import builtins
import datetime
import random
import runpy
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

clock = time.perf_counter
TICK = 0.25
CONSTANT = 0.5
"""What modules draw where both sides must draw alike."""


class EndedError(BaseException):
    """Ends a script that has made all the steps that are compared. Not an `Exception`, so that no handler of the script takes it."""


def note_step(stamps: list[float], steps: int) -> None:
    """Note the time of a step. Raises `EndedError` after `steps` of them; 0: never."""
    stamps.append(clock())
    if steps and len(stamps) >= steps:
        raise EndedError


class Parts:
    """The seconds of what a step is made of, one sum for each step. Of parts within parts the outermost counts."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self._sum, self._depth, self._start = 0.0, 0, 0.0

    def open(self) -> None:
        """A part begins."""
        self._start = self._start if self._depth else clock()
        self._depth += 1

    def close(self, counts: bool = True) -> None:
        """A part ends; it adds nothing where it does not count."""
        self._depth -= 1
        self._sum += clock() - self._start if counts and not self._depth else 0.0

    def end(self) -> None:
        """A step ends."""
        self.steps.append(self._sum)
        self._sum = 0.0


def begin() -> None:
    """Seed what a script might draw from, and let its looks at the time go on in equal ticks."""
    np.random.seed(0)
    random.seed(0)
    namespace: Any = np.random
    sequence = namespace.SeedSequence
    # What an environment is seeded with where the script says no number.
    namespace.SeedSequence = lambda *args, **kwargs: sequence(0) if args == (None,) and not kwargs else sequence(*args, **kwargs)
    folder = str(Path.cwd())
    for name in ("time", "perf_counter"):
        own, looks = getattr(time, name), [0]

        def look(own: Any = own, looks: list[int] = looks) -> float:
            if not sys._getframe(1).f_code.co_filename.startswith(folder):
                return float(own())
            looks[0] += 1
            return TICK * looks[0]

        setattr(time, name, look)
    _stop_the_calendar(folder)


def _stop_the_calendar(folder: str) -> None:
    """Let code below a folder read one moment as now, so that what it names after the date has one name on both sides."""
    plain: Any = datetime.datetime
    find = builtins.__import__

    class Stopped(plain):  # type: ignore[misc]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return plain(2020, 1, 2, 3, 4, 5, tzinfo=tz)

    module = types.ModuleType("datetime")
    vars(module).update({**vars(datetime), "datetime": Stopped})

    # The module itself stays as it is for compiled libraries.
    def other(name: str, variables: Any = None, *args: Any, **kwargs: Any) -> Any:
        ours = name == "datetime" and str((variables or {}).get("__file__", "")).startswith(folder)
        return module if ours else find(name, variables, *args, **kwargs)

    importing: Any = builtins
    importing.__import__ = other


def run(arguments: list[str]) -> None:
    """Run a script as `python FILE …` does."""
    sys.argv = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
    # Packages of the repository that its owner has installed from there.
    sys.path.append(str(Path.cwd()))
    try:
        runpy.run_path(str(Path(arguments[0]).resolve()), run_name="__main__")
    except EndedError:
        return
    except SystemExit as error:
        if error.code not in (None, 0):
            raise


def median_interval(stamps: list[float], compiled: list[int] | None = None) -> float:
    """Seconds from one optimizer step to the next: the median, of all but the first three.

    `compiled` says how many programs had been compiled at each step. What was compiled on the way to a step is no part of it, so that such intervals are
    left out; where there are no others, none is.
    """
    return median_step([0.0, *np.diff(stamps)], compiled)


def median_step(seconds: Sequence[float], compiled: list[int] | None = None) -> float:
    """The median of the seconds of each step, all but the first three: see `median_interval`."""
    if len(seconds) < 3:
        return float("nan")
    first = min(3, len(seconds) - 2)
    later = np.asarray(seconds[first + 1 :])
    steady = np.diff(np.asarray(compiled[first:])) == 0 if compiled else np.ones(len(later), bool)
    return float(np.median(later[steady] if steady.any() else later))
