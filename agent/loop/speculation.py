"""`--jobs N`: while one unit is at work, the next units of the plan are verified in other threads, on a guess of what will be accepted.

A guess costs time at worst. Its evidence is taken when the unit's turn comes and its draft is, to the byte, the one that was verified; else
it is dropped, and the unit is verified as if nobody had guessed. So what a run comes to does not depend on N.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_agent.agent.loop.drafts import draft_at
from migrate_agent.agent.loop.judging import judge
from migrate_agent.agent.loop.speculative_calls import EarlyCalls
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.types import Draft, Evidence, Unit

if TYPE_CHECKING:
    from migrate_agent.agent.loop.context import Context

PLACES = 4
"""How far ahead guesses go, in places of the plan for each thread: bounds what a wrong guess wastes."""


class Dropped(Exception):
    """Ends a verification whose guess was wrong, between two of its stages."""


@dataclass
class Guess:
    """A draft that is being verified before its unit's turn. `premise` says what it was made from."""

    premise: tuple[object, ...]
    draft: Draft
    folder: Path
    dropped: threading.Event = field(default_factory=threading.Event)
    future: Future[Evidence] = field(default_factory=Future)

    def likely(self) -> bool:
        """Whether the unit will be accepted, as far as one knows."""
        if self.draft.holes:
            return False
        return not self.future.done() or (self.future.exception() is None and self.future.result().status == "verified")

    def withdraw(self) -> bool:
        """Whether it could be taken back before a thread took it up."""
        return self.future.cancel()

    def drop(self) -> None:
        """End it, at its next stage where it runs already; nobody waits for it."""
        self.dropped.set()
        self.future.cancel()


@dataclass(frozen=True)
class Situation:
    """Where the run is: the place at work, the ids accepted before it, those tried in vain, and the texts that a model proposed."""

    place: int
    accepted: tuple[str, ...]
    lost: tuple[str, ...]
    texts: Mapping[str, str]


class Ahead:
    """Verifies up to `jobs` units at the same time, that at work included. To be closed after the sandbox, which ends what they wait for."""

    def __init__(self, jobs: int = 1) -> None:
        self._others = jobs - 1
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="ahead")
        self._planner = ThreadPoolExecutor(1, thread_name_prefix="ahead-planner")
        self._guesses: dict[int, Guess] = {}
        self._place = -1
        self._lock = threading.Lock()
        self._closed = False
        self._early = EarlyCalls(jobs)

    def judge(self, context: Context, now: Situation, draft: Draft, folder: Path, tell: Callable[[str], None]) -> Evidence:
        """What `judge` says of the draft of the unit at work, perhaps said already; and let the others go on with the next units."""
        guess = self._take(now.place)
        if self._others:
            self._look_ahead(context, now)
        if guess is None or guess.draft.files != draft.files or guess.withdraw():
            return judge(context, _unit(context, now.place), draft, folder, tell)
        tell("begun while another unit was at work")
        evidence = guess.future.result()
        _adopt(guess.folder, folder)
        return evidence

    def begin(self, context: Context, now: Situation) -> None:
        """Let the others go on with the next units while the unit at work waits for its model."""
        if self._others:
            with self._lock:
                self._place = now.place
            self._look_ahead(context, now)

    def close(self) -> None:
        """Drop all guesses and wait for the threads, but for those that wait for a model."""
        with self._lock:
            self._closed = True
            for guess in self._guesses.values():
                guess.drop()
        for pool in (self._planner, self._pool):
            pool.shutdown(cancel_futures=True)

    def _take(self, place: int) -> Guess | None:
        """The guess for this place. What was guessed for it again by then, or for places before it, is dropped."""
        with self._lock:
            self._place = place
            taken = self._guesses.pop(place, None)
            for other in [other for other in self._guesses if other < place]:
                self._guesses.pop(other).drop()
        return taken

    def _look_ahead(self, context: Context, now: Situation) -> None:
        with suppress(RuntimeError):  # closed meanwhile
            self._planner.submit(self._plan, context, now)

    def _plan(self, context: Context, now: Situation) -> None:
        """Begin with as many of the next units as there are threads without work, each after those before it that will likely be accepted."""
        order = context.plan.order
        accepted, lost = [*now.accepted, order[now.place]], list(now.lost)
        for place in range(now.place + 1, min(now.place + 1 + PLACES * self._others, len(order))):
            if not examples_of(context.recording, order[place]):
                continue
            guess = self._guess(context, now, place, (tuple(accepted), tuple(lost)))
            if guess is None:
                return
            (accepted if guess.likely() else lost).append(order[place])

    def _guess(self, context: Context, now: Situation, place: int, before: tuple[tuple[str, ...], tuple[str, ...]]) -> Guess | None:
        """The guess for this place, begun where it is not there; None where there is nothing more to begin."""
        premise = (*before, dict(now.texts))
        with self._lock:
            old = self._guesses.get(place)
            if old is not None and old.premise == premise:
                return old
            busy = sum(not each.future.done() for each in self._guesses.values())
            if not self._current(now) or (old is None and busy >= self._others):
                return None
        draft = draft_at(context, place, *before, now.texts)
        with self._lock:
            if not self._current(now):
                return None
            if old is not None and old.draft == draft:
                old.premise = premise
                return old
            if old is not None:
                old.drop()
            guess = self._guesses[place] = Guess(premise, draft, _folder(context, place))
            self._begin(context, now, place, guess)
        return guess

    def _current(self, now: Situation) -> bool:
        return not self._closed and now.place == self._place

    def _begin(self, context: Context, now: Situation, place: int, guess: Guess) -> None:
        """A draft with holes is not verified: it only says that the unit will not be accepted."""
        if guess.draft.holes:
            guess.future.cancel()
            self._early.ask(context, place, now.accepted, now.lost, now.texts)
            return
        guess.future = self._pool.submit(self._verify, context, place, guess)
        guess.future.add_done_callback(lambda _: self._look_ahead(context, now))

    def _verify(self, context: Context, place: int, guess: Guess) -> Evidence:
        def tell(_: str) -> None:
            if guess.dropped.is_set():
                raise Dropped

        try:
            evidence = judge(context, _unit(context, place), guess.draft, guess.folder, tell)
        except BaseException:
            shutil.rmtree(guess.folder, ignore_errors=True)
            raise
        if guess.dropped.is_set() or evidence.status != "failed":
            shutil.rmtree(guess.folder, ignore_errors=True)
        return evidence


def _unit(context: Context, place: int) -> Unit:
    return context.inventory.unit(context.plan.order[place])


def _folder(context: Context, place: int) -> Path:
    """A new folder for a guess, beside where the unit is judged in its turn."""
    return context.folder.unit(place, _unit(context, place).name) / f"ahead-{uuid.uuid4().hex[:12]}"


def _adopt(guessed: Path, folder: Path) -> None:
    """Move what a failed verification left (the tree that was judged, and the input that shows it) to where it is looked for."""
    for part in guessed.glob("*"):
        shutil.rmtree(folder / part.name, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(part, folder / part.name)
    shutil.rmtree(guessed, ignore_errors=True)
