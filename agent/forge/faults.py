"""Answers of a forge that are no success, each as one line that says what to do; and reads that are tried again where a fault may pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from migrate_agent.agent.forge.base import ForgeError

T = TypeVar("T")
TRIES = 4
LONGEST = 60.0
"""Seconds that are waited for a rate limit; a longer one is told instead."""
PASSING = (500, 502, 503, 504)

ADVICE: Mapping[int, str] = {
    401: "the token is not accepted: it may be mistyped, revoked or expired",
    403: "the token may not do this: it lacks a scope (docs/pull-requests.md lists them), or the organisation wants it authorised for single sign-on",
    404: "not there, or hidden from this token: check --remote, and that the token may see the project",
    405: "the forge does not allow this: requests may be disabled for the project",
    409: "the forge is in the middle of another change to this: run the command again",
    410: "requests are disabled for this project",
    422: "the forge refuses what was sent",
    451: "the project is blocked",
}
"""HTTP status → what it means here."""


class Answer(Exception):
    """An answer that is no success, in the words of no client library. `status` 0: none came."""

    def __init__(self, status: int, message: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message)
        self.status, self.message, self.headers = status, message, headers or {}

    def header(self, name: str) -> str:
        """A header, in any case."""
        return next((value for key, value in self.headers.items() if key.lower() == name), "")

    @property
    def limited(self) -> bool:
        """Whether it is a rate limit: primary (none left) or secondary."""
        spent = self.header("x-ratelimit-remaining") == "0" or bool(self.header("retry-after")) or "rate limit" in self.message.lower()
        return self.status == 429 or (self.status == 403 and spent)

    def pause(self, now: float) -> float:
        """Seconds until the limit ends: `Retry-After`, else the time of reset, else a minute, as GitHub asks of who is told nothing."""
        after, reset = self.header("retry-after"), self.header("x-ratelimit-reset") or self.header("ratelimit-reset")
        if after.isdigit():
            return float(after)
        return max(float(reset) - now, 0.0) + 1.0 if reset.isdigit() else LONGEST


@dataclass(frozen=True)
class Caller:
    """Calls the forge. `wait` and `now` are the clock's."""

    host: str
    wait: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time

    def read(self, operation: str, call: Callable[[], T]) -> T:
        """A call that changes nothing: tried again after a rate limit, a server's fault or a lost connection."""
        return self._tried(operation, call, lambda answer: answer.limited or answer.status in (0, *PASSING))

    def write(self, operation: str, call: Callable[[], T]) -> T:
        """A call that changes something: tried again after a rate limit only, since after anything else it may have been done."""
        return self._tried(operation, call, lambda answer: answer.limited)

    def _tried(self, operation: str, call: Callable[[], T], again: Callable[[Answer], bool]) -> T:
        for tries_left in reversed(range(TRIES)):
            try:
                return call()
            except Answer as answer:
                pause = answer.pause(self.now()) if answer.limited else float(2 ** (TRIES - tries_left - 1))
                if not tries_left or not again(answer) or pause > LONGEST:
                    raise ForgeError(self.line(operation, answer)) from None
                self.wait(pause)
        raise AssertionError("the last try returns or raises")

    def line(self, operation: str, answer: Answer) -> str:
        """The error as the user reads it."""
        said = " ".join(answer.message.split())[:300]
        if answer.limited:
            return f"{self.host}: rate limit reached while {operation}: run the command again in {int(answer.pause(self.now()))} s"
        if answer.status == 0:
            return f"{self.host}: no answer while {operation} ({said}): run the command again, it goes on from there"
        if answer.status >= 500:
            return f"{self.host}: the server failed ({answer.status}) while {operation}: run the command again, it goes on from there"
        advice = ADVICE.get(answer.status, "the forge refuses this")
        return f"{self.host}: {answer.status} while {operation}: {advice}" + (f" ({said})" if said else "")
