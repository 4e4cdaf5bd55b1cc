"""A clock that shows both sides the same times, so that what they print of it and the folders that they name after it are equal."""

from __future__ import annotations

import builtins
import datetime
import sys
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

BEGIN, DAY = 1_700_000_000.0, 86_400.0
TICK = 0.125
"""Seconds that the clock of a judged program goes on with each look at it."""
COUNTERS = ("time", "perf_counter", "monotonic", "process_time")
CALENDARS = {"gmtime": 0, "localtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions of `time` that mean now without a further argument, and how many arguments they have before that."""


def steady_clock(work: Path, later: bool = False) -> None:
    """Let the program's own looks at the clock go on in equal ticks. A run that is `later` begins a day after the one that left its files.

    Only code below the folder `work` sees it; libraries have their own clock.
    """
    begin = BEGIN + (DAY if later else 0.0)
    folder = str(work)
    for name in COUNTERS:
        setattr(time, name, _where(folder, _ticking(begin), getattr(time, name)))
    now, own = _ticking(begin), time.localtime
    for name, before in CALENDARS.items():
        setattr(time, name, _calendar(folder, now, getattr(time, name), before, time.gmtime if name == "gmtime" else own))
    _import_dates(folder, {name: _dated(folder, now, getattr(datetime, name)) for name in ("datetime", "date")})


def _import_dates(folder: str, steady: Mapping[str, Any]) -> None:
    """Let the program's own `import datetime` and `from datetime import …` find other classes.

    The module itself stays: compiled libraries, such as pandas, make types of its classes' layout.
    """
    module, namespace, own = types.ModuleType("datetime", datetime.__doc__), dict(vars(datetime)), builtins.__import__
    vars(module).update({**namespace, **steady})

    def find(name: str, variables: Any = None, *args: Any, **kwargs: Any) -> Any:
        ours = name == "datetime" and str((variables or {}).get("__file__", "")).startswith(folder)
        return module if ours else own(name, variables, *args, **kwargs)

    importing: Any = builtins
    importing.__import__ = find


def _ticking(begin: float) -> Callable[[], float]:
    looks = [0]

    def look() -> float:
        looks[0] += 1
        return begin + TICK * looks[0]

    return look


def _where(folder: str, steady: Callable[[], float], own: Callable[[], float]) -> Callable[[], float]:
    return lambda: steady() if _calls(folder, sys._getframe(1)) else own()


def _calls(folder: str, frame: Any) -> bool:
    """Whether a frame is of the program's own code."""
    return str(frame.f_code.co_filename).startswith(folder)


def _calendar(
    folder: str, now: Callable[[], float], own: Callable[..., Any], before: int, split: Callable[[float], Any]
) -> Callable[..., Any]:
    """A function of `time` that means the steady clock where the program leaves the moment out."""

    def read(*args: Any) -> Any:
        if len(args) > before or not _calls(folder, sys._getframe(1)):
            return own(*args)
        moment = now()
        return own(*args, moment if own.__name__ in ("gmtime", "localtime", "ctime") else split(moment))

    return read


def _dated(folder: str, now: Callable[[], float], own: Any) -> Any:
    """`datetime` or `date`, whose today is that of the steady clock; objects of either class count as its own."""

    class Meta(type):
        def __instancecheck__(cls, one: Any) -> bool:
            return isinstance(one, own) if cls is steady else type.__instancecheck__(cls, one)

        def __subclasscheck__(cls, one: Any) -> bool:
            return issubclass(one, own) if cls is steady else type.__subclasscheck__(cls, one)

    def reading(name: str) -> Any:
        def read(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if not _calls(folder, sys._getframe(1)):
                return getattr(own, name)(*args, **kwargs)
            moment = now()
            zones = {"utcnow": (datetime.UTC,)}.get(name, ())
            read = own.fromtimestamp(moment, *args, *zones, **kwargs)
            return read.replace(tzinfo=None) if zones else read

        return classmethod(read)

    names = [name for name in ("now", "utcnow", "today") if hasattr(own, name)]
    # What it makes are objects of the class itself, which can be pickled.
    made = {"__slots__": (), "__module__": "datetime", "__new__": lambda cls, *args, **kwargs: own(*args, **kwargs)}
    steady = Meta(own.__name__, (own,), {**made, **{name: reading(name) for name in names}})
    return steady
