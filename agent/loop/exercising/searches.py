"""Searches for examples of units, of which the next ones are begun before their turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from migrate_agent.tools.record.at_once import at_once
from migrate_agent.tools.record.infer import Guess
from migrate_agent.tools.types import Unit


class Searches:
    """Searches begun ahead of their turn: what they give does not depend on how many run, and one that is not asked for costs time alone."""

    def __init__(self, search: Callable[[Unit], Guess], pool: ThreadPoolExecutor) -> None:
        self._search, self._pool = search, pool
        self._begun: dict[str, Future[Guess]] = {}

    def guess(self, units: Sequence[Unit]) -> Guess:
        """What the search for the first of these units gives; those after it are likely to be asked for next."""
        for unit in units[: at_once()]:
            if unit.id not in self._begun:
                self._begun[unit.id] = self._pool.submit(self._search, unit)
        return self._begun.pop(units[0].id).result()


@contextmanager
def searches(search: Callable[[Unit], Guess]) -> Iterator[Searches]:
    """Searches by one function. Those that nobody asked for end with it."""
    pool = ThreadPoolExecutor(at_once(), thread_name_prefix="search")
    try:
        yield Searches(search, pool)
    finally:
        pool.shutdown(cancel_futures=True)
