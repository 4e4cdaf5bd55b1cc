"""How long a search may take, whatever else the machine does."""

from __future__ import annotations

import time

WAITING = 3
"""So many times as long it may take by the clock."""


class OwnSeconds:
    """Seconds of this process from now on: what other processes of a busy machine take does not count, up to `WAITING` times as long by the clock."""

    def __init__(self, seconds: float) -> None:
        self._deadline, self._latest = time.process_time() + seconds, time.monotonic() + WAITING * seconds

    def forgive(self, seconds: float) -> None:
        """Let the search go on so much longer: one call that nothing could interrupt took them."""
        self._deadline, self._latest = self._deadline + seconds, self._latest + seconds

    @property
    def spent(self) -> bool:
        """Whether they are over."""
        return time.process_time() > self._deadline or time.monotonic() > self._latest
