"""Several searches in the sandbox at the same time: each is one process that computes with one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MOST = 4
"""Each process holds in memory what it imported."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once() -> int:
    """How many searches run at the same time."""
    return min(MOST, os.cpu_count() or 1)


def in_order(search: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """What each search gives, in the order of the items."""
    with ThreadPoolExecutor(at_once(), thread_name_prefix="search") as pool:
        yield from pool.map(search, items)
