"""`--jobs N` and `--cluster`: while one unit is at work, the next units of the plan are verified in other threads, on a guess of what will be accepted.

A wrong guess costs time only. Its evidence is used where the unit's turn comes with the same draft, byte for byte. Any other guess is dropped,
and the unit is verified as if nobody had guessed. So the result of a run does not depend on N.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate_agent.agent.loop.context import Context, Situation
from migrate_agent.agent.loop.drafts import draft_unit
from migrate_agent.agent.loop.judging import verify_draft
from migrate_agent.agent.loop.speculative_calls import EarlyCalls
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.syntax_trees import build_one_at_a_time
from migrate_agent.tools.types import Draft, Evidence

POSITIONS = 4
"""How many positions of the plan guesses look ahead for each thread: bounds the work that a wrong guess wastes."""


class Dropped(Exception):
    """Ends a verification whose guess was wrong, between two of its stages."""


@dataclass
class Guess:
    """A draft that is being verified before its unit's turn, and the situation that it was made for."""

    situation: Situation
    draft: Draft
    folder: Path
    dropped: threading.Event = field(default_factory=threading.Event)
    future: Future[Evidence] = field(default_factory=Future)

    def likely(self) -> bool:
        """Whether the unit will be accepted, by what is known now."""
        if self.draft.holes:
            return False
        return not self.future.done() or (self.future.exception() is None and self.future.result().status == "verified")

    def withdraw(self) -> bool:
        """Cancel the guess where no thread works on it yet. Return whether that was in time."""
        return self.future.cancel()

    def drop(self) -> None:
        """End the guess: at its next stage where it runs already. Nobody waits for it."""
        self.dropped.set()
        self.future.cancel()


class Speculation:
    """Verifies up to `jobs` units at the same time, the one at work included.

    Close it after the sandbox: its threads wait for jobs of the sandbox, and closing the sandbox ends those.
    """

    def __init__(self, jobs: int = 1) -> None:
        build_one_at_a_time()
        self._others = jobs - 1
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="ahead")
        # Guesses are planned in one thread of their own: composing a draft takes seconds, and must not delay the unit at work.
        self._planner = ThreadPoolExecutor(1, thread_name_prefix="ahead-planner")
        self._guesses: dict[int, Guess] = {}
        self._position = -1
        self._lock = threading.Lock()
        self._closed = False
        self._early = EarlyCalls(jobs)

    def verify(self, context: Context, situation: Situation, draft: Draft, folder: Path, tell: Callable[[str], None]) -> Evidence:
        """The evidence on the draft of the unit at work, from a guess where there is one; the other threads go on with the next units."""
        guess = self._take(situation.position)
        if self._others:
            self._plan_later(context, situation)
        if guess is None or guess.draft.files != draft.files or guess.withdraw():
            return verify_draft(context, context.unit_at(situation.position), draft, folder, tell)
        tell("begun while another unit was at work")
        evidence = guess.future.result()
        _adopt(guess.folder, folder)
        return evidence

    def look_ahead(self, context: Context, situation: Situation) -> None:
        """Let the others go on with the next units while the unit at work waits for its model."""
        if self._others:
            with self._lock:
                self._position = situation.position
            self._plan_later(context, situation)

    def close(self) -> None:
        """Drop all guesses and wait for the threads, but not for those that wait for a model."""
        with self._lock:
            self._closed = True
            for guess in self._guesses.values():
                guess.drop()
        for pool in (self._planner, self._pool):
            pool.shutdown(cancel_futures=True)

    def _take(self, position: int) -> Guess | None:
        """The guess for a position of the plan. Guesses for earlier positions are dropped: their turn is over."""
        with self._lock:
            self._position = position
            guess = self._guesses.pop(position, None)
            for earlier in [other for other in self._guesses if other < position]:
                self._guesses.pop(earlier).drop()
        return guess

    def _plan_later(self, context: Context, now: Situation) -> None:
        with suppress(RuntimeError):  # the pool refuses work once it was closed, and then nobody needs a guess
            self._planner.submit(self._plan, context, now)

    def _plan(self, context: Context, now: Situation) -> None:
        """Begin with as many of the next units as there are idle threads, each on top of those before it that will likely be accepted."""
        order = context.plan.order
        accepted, rejected = [*now.accepted, order[now.position]], list(now.rejected)
        for position in range(now.position + 1, min(now.position + 1 + POSITIONS * self._others, len(order))):
            if not examples_of(context.recording, order[position]):
                continue
            guess = self._guess(context, now, Situation(position, tuple(accepted), tuple(rejected), dict(now.texts)))
            if guess is None:
                return
            (accepted if guess.likely() else rejected).append(order[position])

    def _guess(self, context: Context, now: Situation, later: Situation) -> Guess | None:
        """The guess for a later unit, begun where there is none. `None` where no thread is idle, or the run has moved on."""
        with self._lock:
            old = self._guesses.get(later.position)
            if old is not None and old.situation == later:
                return old
            busy = sum(not guess.future.done() for guess in self._guesses.values())
            if not self._current(now) or (old is None and busy >= self._others):
                return None
        draft = draft_unit(context, later)  # without the lock, which the unit at work needs to go on
        with self._lock:
            if not self._current(now):
                return None
            if old is not None and old.draft == draft:
                old.situation = later
                return old
            if old is not None:
                old.drop()
            guess = self._guesses[later.position] = Guess(later, draft, _folder(context, later.position))
            self._begin(context, now, guess)
        return guess

    def _current(self, now: Situation) -> bool:
        return not self._closed and now.position == self._position

    def _begin(self, context: Context, now: Situation, guess: Guess) -> None:
        """A draft with holes is not verified: it only says that the unit will not be accepted."""
        if guess.draft.holes:
            guess.future.cancel()
            self._early.ask(context, replace(guess.situation, accepted=now.accepted, rejected=now.rejected))
            return
        guess.future = self._pool.submit(self._verify, context, guess)
        guess.future.add_done_callback(lambda _: self._plan_later(context, now))

    def _verify(self, context: Context, guess: Guess) -> Evidence:
        unit = context.unit_at(guess.situation.position)

        def tell(text: str) -> None:
            if guess.dropped.is_set():
                raise Dropped
            if context.workers.remote:  # where several machines are at work, people want to see all of them
                context.progress.stage(unit.id, f"verifying ahead: {text}")

        try:
            evidence = verify_draft(context, unit, guess.draft, guess.folder, tell)
        except BaseException:
            shutil.rmtree(guess.folder, ignore_errors=True)
            raise
        # Only a failure leaves files that somebody looks at: the candidate, and the input that shows it.
        if guess.dropped.is_set() or evidence.status != "failed":
            shutil.rmtree(guess.folder, ignore_errors=True)
        return evidence


def _folder(context: Context, position: int) -> Path:
    """A new folder for a guess, inside the unit's own: `_adopt` can move its contents without copying."""
    return context.unit_folder(position) / f"ahead-{uuid.uuid4().hex[:12]}"


def _adopt(guessed: Path, folder: Path) -> None:
    """Move what a failed verification left, the candidate and the input that shows the failure, to where they are looked for."""
    for part in guessed.glob("*"):
        shutil.rmtree(folder / part.name, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(part, folder / part.name)
    shutil.rmtree(guessed, ignore_errors=True)
