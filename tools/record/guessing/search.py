"""Best-first search for an example that runs: the attempt that came furthest is mended first."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import NamedTuple

from migrate_agent.tools.record.guessing.options import Options
from migrate_agent.tools.record.guessing.repairs import repairs, smaller_models
from migrate_agent.tools.record.guessing.sizes.more_numbers import more_normalised
from migrate_agent.tools.record.guessing.sizes.slimmer_models import slimmer, with_defaults
from migrate_agent.tools.record.guessing.switches import is_unavailable, other_branches, without_downloads
from migrate_agent.tools.record.guessing.trials.computing_parts import computing_parts
from migrate_agent.tools.record.guessing.trials.deeper_models import between, whole_depth
from migrate_agent.tools.record.guessing.trials.fewer_numbers import MOST_AXES, axis_by_axis, flatter, halved, narrower, smaller
from migrate_agent.tools.record.guessing.trials.origins import MANY_NORMALISED
from migrate_agent.tools.record.guessing.trials.other_kinds import with_arrays
from migrate_agent.tools.record.guessing.trials.own_seconds import OwnSeconds
from migrate_agent.tools.record.guessing.trials.trial import MOST_SECONDS, Attempt, Outcome, Stage, Trial
from migrate_agent.tools.record.guessing.values import Tensor, change_tensors

MOST_TRIALS = 600
LEAST_TRIALS = 40
"""Where a search made fewer in its time, it has as long again."""
FIRST_MENDS = 8
"""Mends that are tried between one start and the next."""
FIRST_CALLS = 3
MOST_SMALLER = 4
MOST_MENDED = 5
"""Complaints of one statement that count as steps ahead: two of them may also take turns."""
MUCH_FASTER = 0.5
SLOW = 0.2
"""Seconds of this process from which a call takes long: a verification repeats it a hundred times."""
FEW_TRIALS = 0.4
"""Seconds of a construction from which the time is over after a few trials: where its first call fails, smaller numbers come next."""
MOST_SLIM_STARTS = 2
SLIMMER = 0.75
"""Of the cost that a smaller model may have."""
OPERATION, PARAMETER = 1e-3, 2e-7
"""Seconds that an operation and a number among the parameters count for."""
SLIMMING_SECONDS = 8.0
MOST_SLIMMER = 24
MOST_FORGIVEN = 20.0
"""Seconds beyond the limit of a trial that count for nothing, where code in C cannot be interrupted."""
VALUES_ASIDE = re.compile(r",? ?but got .*|\d+")
"""What an error says of the values at hand, in place of what is wanted."""
PATIENCE = 40
"""Trials from one attempt after which another one has its turn."""


class Found(NamedTuple):
    """The attempt that came furthest, and how far that was."""

    attempt: Attempt
    outcome: Outcome
    trials: int
    seconds: float = 0.0
    """How long it took."""
    whole: Attempt | None = None
    """The attempt as large as it was before its numbers were made smaller."""

    @property
    def cost(self) -> float:
        """Seconds of its trial, and more for each operation, which XLA compiles anew in each check, and each parameter, which each check copies."""
        return self.seconds + self.outcome.operations * OPERATION + self.outcome.parameters * PARAMETER


@dataclass(frozen=True, order=True)
class State:
    """A failed attempt with the mends that are left to try; the smallest is worked on first."""

    stage: int
    progress: int
    idle: int
    """How often in a row mends brought nothing."""
    order: int
    neighbours: Iterator[Attempt] = field(compare=False)
    tried: int = field(compare=False, default=0)
    complaints: frozenset[str] = field(compare=False, default=frozenset())
    """Its error and those of the same statement before it, without the numbers and what they were about."""
    mended: int = field(compare=False, default=0)
    """How many complaints of the same statement have made room for others."""


class Search:
    """Tries attempts on one class until one runs, or `seconds` of this process or `MOST_TRIALS` are spent.

    What other processes of a busy machine take does not count, up to `WAITING` times as long by the clock.
    """

    def __init__(self, trial: Trial, options: Options, seconds: float, *, to_missing: bool = False) -> None:
        """With `to_missing` it ends with the first call that reads an attribute which another method sets."""
        self.trial, self.options, self._to_missing = trial, options, to_missing
        self._time, self._more = OwnSeconds(seconds), seconds
        self._seen: set[tuple[str, str | None]] = set()
        self._order = count()
        self._queue: list[State] = []
        self._last: Outcome | None = None
        """What the last attempt came to; `None` where it had been tried before."""
        self.best: Found | None = None
        self._seconds = 0.0
        """How long the last attempt took."""
        self._forgiven = MOST_FORGIVEN

    def run(self) -> Found | None:
        """The attempt that runs, else the one that came furthest; `None` where there was none to try."""
        starts = enumerate(self.options.starts(), 1)
        while not self._over():
            number, start = next(starts, (0, None))
            if start is not None and self._begin_apart(start):
                break
            if start is None and not self._queue:
                break
            # What the repository constructs is tried in all of its forms before one is mended.
            if not 0 < number < len(self.options.of_objects) and self._work(FIRST_MENDS if start is not None else MOST_TRIALS):
                break
        if self.best is not None and self.best.outcome.stage is Stage.DONE:
            success = self._without_downloads(self._with_kept_shapes(self._deep_enough(self.best)))
            success = self._with_computing_parts(self._with_arrays(self._as_constructed(success)))
            self._shrink(self._with_more_normalised(success))
            self._slim(self.best)
        return self.best

    def run_from(self, start: Attempt) -> Found | None:
        """As `run`, from this construction alone."""
        if not self._begin(start):
            self._work(MOST_TRIALS)
        return self.best

    def _without_downloads(self, success: Found) -> Found:
        """Take the switch that leaves downloaded weights out, where there is one: they are not there, and the rest is the same."""
        for attempt in without_downloads(success.attempt, self.options) if success.outcome.downloads else ():
            if self._time.spent:
                break
            outcome = self._run(attempt)
            if outcome.stage is Stage.DONE and not outcome.downloads:
                self.best = self._found(attempt, outcome)
                return self.best
        return success

    def _with_computing_parts(self, success: Found) -> Found:
        """Take modules that compute in the place of those that hand back what they take, where these run too."""
        attempt = computing_parts(success.attempt)
        other = self._run_again(attempt) if attempt != success.attempt else None
        if other is None or other.outcome.progress < success.outcome.progress:
            return success
        self.best = other
        return other

    def _deep_enough(self, success: Found) -> Found:
        """Take depths of the repository's own where small ones leave places of the code out: the least that reach as many as its own do."""
        seconds, depths = self._seconds, whole_depth(success.attempt, self.options)
        deepest = self._run_again(depths[1]) if depths is not None else None
        if depths is None or deepest is None or deepest.outcome.progress <= success.outcome.progress:
            return success
        for attempt in between(depths[0], self.options) if self._seconds > max(SLOW, seconds) else ():
            deeper = None if self._time.spent else self._run_again(attempt)
            if deeper is not None and deeper.outcome.progress >= deepest.outcome.progress:
                deepest = deeper
                break
        self.best = deepest
        return deepest

    def _found(self, attempt: Attempt, outcome: Outcome) -> Found:
        return Found(attempt, outcome, len(self._seen), self._seconds)

    def _run_again(self, attempt: Attempt) -> Found | None:
        """What a changed attempt came to; None where it does not run."""
        outcome = self._run(attempt)
        return self._found(attempt, outcome) if outcome.stage is Stage.DONE else None

    def _with_kept_shapes(self, success: Found) -> Found:
        """Take inputs of two axes where others give parameters the shapes of their own: a first batch that sets them has features last."""
        attempt = replace(success.attempt, call=tuple((name, change_tensors(value, _rows)) for name, value in success.attempt.call or ()))
        if success.outcome.reshapes and attempt != success.attempt:
            outcome = self._run(attempt)
            if outcome.stage is Stage.DONE and not outcome.reshapes:
                self.best = self._found(attempt, outcome)
                return self.best
        return success

    def _as_constructed(self, success: Found) -> Found:
        """Take what the repository itself constructs where that is faster by far: of a size that no name tells of, a guess may be much too large."""
        seconds = self._seconds
        for arguments in islice(self.options.constructions, MOST_SMALLER) if seconds >= SLOW else ():
            if self._time.spent:
                break
            outcome = self._run(attempt := replace(success.attempt, init=tuple({**dict(success.attempt.init), **arguments}.items())))
            if outcome.stage is Stage.DONE and self._seconds < seconds * MUCH_FASTER and outcome.progress >= success.outcome.progress:
                self.best = success = self._found(attempt, outcome)
                seconds = self._seconds
        return success

    def _with_arrays(self, success: Found) -> Found:
        """Take NumPy's arrays in the place of the tensors that the code uses as such: its callers have them on the host."""
        attempt = with_arrays(success.attempt, self.options.arrays)
        outcome = self._run(attempt) if attempt != success.attempt else None
        if outcome is not None and outcome.stage is Stage.DONE:
            self.best = self._found(attempt, outcome)
            return self.best
        return success

    def _with_more_normalised(self, success: Found) -> Found:
        """Take more numbers where a normalisation saw two or three in a channel: rounding alone may decide what comes of so few."""
        for attempt in more_normalised(success.attempt) if success.outcome.fewest_normalised < MANY_NORMALISED else ():
            other = None if self._time.spent else self._run_again(attempt)
            if other is not None and other.outcome.fewest_normalised > success.outcome.fewest_normalised:
                self.best = success = other
                if other.outcome.fewest_normalised >= MANY_NORMALISED:
                    break
        return success

    def _shrink(self, success: Found) -> None:
        """Take smaller inputs where these run too: every check of the verifier repeats the example many times."""
        seconds, tried = self._seconds, {success.attempt}
        for fewer in (flatter, smaller, narrower, halved, *[axis_by_axis] * MOST_AXES):
            if fewer in (halved, axis_by_axis) and seconds < SLOW:
                return
            for attempt in islice(fewer(success.attempt), MOST_SMALLER):
                if self._time.spent:
                    return
                if attempt in tried:
                    continue
                tried.add(attempt)
                outcome = self._run(attempt)
                if outcome.stage is Stage.DONE and outcome.reaches(success.outcome):
                    self.best = success = self._found(attempt, outcome)
                    seconds = self._seconds
                    break

    def _slim(self, success: Found) -> None:
        """Take smaller numbers for the constructor of what takes long, where these run the same places and are faster."""
        time_left, slimmest, trials = OwnSeconds(SLIMMING_SECONDS), success, 0
        while slimmest.cost > SLOW:
            for attempt in slimmer(slimmest.attempt, self.trial.init_parameters, self.options.classes):
                if time_left.spent or trials >= MOST_SLIMMER:
                    return
                trials += 1
                other = self._run_again(attempt)
                if other is not None and other.cost < slimmest.cost * SLIMMER and other.outcome.reaches(success.outcome):
                    self.best = slimmest = other._replace(whole=with_defaults(success.attempt, attempt, self.trial.init_parameters))
                    break
            else:
                return

    def _begin(self, start: Attempt) -> bool:
        """Try a start with its first calls at once: what the repository itself constructs runs more often than a mend of what names suggest."""
        return self._try(start, 0) or self._try_calls(start)

    def _begin_slimmer(self, start: Attempt) -> bool:
        """Try a start with smaller numbers, and the first mends of its calls."""
        waiting, over = self._queue, False
        for slim in islice(slimmer(start, self.trial.init_parameters, self.options.classes), MOST_SLIM_STARTS):
            self._queue = []
            over = over or self._begin(replace(slim, call=None)) or self._work(FIRST_MENDS)
            waiting = [*waiting, *self._queue]
        self._queue = waiting
        heapq.heapify(self._queue)
        return over

    def _begin_apart(self, start: Attempt) -> bool:
        """As `_begin`, and where the start comes less far than what waits, try its own mends first: what a factory of the repository makes may lack one
        number, and what has nothing of it may fail later."""
        waiting, self._queue = self._queue, []
        over = self._begin(start)
        behind = bool(waiting and self._queue) and min(waiting) < min(self._queue)
        over = over or (behind and self._work(FIRST_MENDS))
        self._queue = [*waiting, *self._queue]
        heapq.heapify(self._queue)
        return over

    def _try_calls(self, attempt: Attempt) -> bool:
        """Try the first calls of what an attempt has just constructed. Another call of what takes too long takes as long."""
        if attempt.call is not None or self._last is None or self._last.stage is not Stage.CONSTRUCTED:
            return False
        slow = self._seconds > FEW_TRIALS
        for number, call in enumerate(islice(self._calls(attempt), FIRST_CALLS)):
            if self._over():
                return False
            if self._try(call, 0) or (slow and not number and self._begin_slimmer(attempt)):
                return True
            if self._last is not None and self._last.error.startswith("TimeoutError"):
                fewer = (replace(smaller, call=None) for smaller in smaller_models(attempt, self.options))
                return any(self._begin(smaller) for smaller in islice(fewer, MOST_SMALLER))
        return False

    def _work(self, budget: int) -> bool:
        """Mend queued attempts. Returns whether one ran, or none can."""
        for _ in range(budget):
            if not self._queue or self._over():
                return False
            state = heapq.heappop(self._queue)
            neighbour = next(state.neighbours, None)
            if neighbour is None:
                continue
            state = replace(state, tried=state.tried + 1, idle=state.idle + (state.tried % PATIENCE == PATIENCE - 1))
            heapq.heappush(self._queue, state)
            if self._try(neighbour, state.idle + 1, state) or self._try_calls(neighbour):
                return True
        return False

    def _over(self) -> bool:
        if self._time.spent and len(self._seen) < LEAST_TRIALS and self._more:
            # Attempts that take long are few: a search that has hardly begun shows nothing.
            self._time.forgive(self._more)
            self._more = 0.0
        return self._time.spent or len(self._seen) >= MOST_TRIALS

    def _try(self, attempt: Attempt, idle: int, parent: State | None = None) -> bool:
        """Run an attempt and queue its repairs. Returns whether the search is over."""
        example = self.trial.example(attempt)
        key = example.init, example.call if attempt.call is not None else None
        self._last = None
        if key in self._seen:
            return False
        self._seen.add(key)
        outcome = self._run(attempt)
        self._last = outcome
        reach = (-outcome.stage, -outcome.progress)
        if self.best is None or reach < (-self.best.outcome.stage, -self.best.outcome.progress):
            self.best = self._found(attempt, outcome)
        if self._to_missing and outcome.missing is not None:
            self.best = self._found(attempt, outcome)
            return True
        if outcome.stage is Stage.DONE or outcome.hopeless:
            return True
        if is_unavailable(outcome):
            neighbours = other_branches(attempt, outcome, self.options)
        else:
            neighbours = self._calls(attempt) if outcome.stage is Stage.CONSTRUCTED else repairs(attempt, outcome, self.options)
        # One that came no further than what it mends waits behind the other mends of that: else the search runs
        # away with one argument and never comes to the next.
        complaints = frozenset({VALUES_ASIDE.sub("", outcome.error)})
        mended = 0
        if parent is not None and reach == (parent.stage, parent.progress + parent.mended):
            # Another complaint of the same statement: what the first one was about is mended.
            mended = min(parent.mended + 1, MOST_MENDED) if not complaints <= parent.complaints else 0
            complaints |= parent.complaints
        reach = (reach[0], reach[1] - mended)
        advanced = parent is None or reach < (parent.stage, parent.progress)
        state = State(*reach, 0 if advanced else idle, next(self._order), neighbours, complaints=complaints, mended=mended)
        heapq.heappush(self._queue, state)
        return False

    def _run(self, attempt: Attempt) -> Outcome:
        began = time.process_time()
        outcome = self.trial.run(attempt)
        self._seconds = time.process_time() - began
        excess = min(self._seconds - MOST_SECONDS, self._forgiven)
        if excess > 0:
            self._time.forgive(excess)
            self._forgiven -= excess
        return outcome

    def _calls(self, attempt: Attempt) -> Iterator[Attempt]:
        """The first calls of the instance that the last trial constructed: they are tried later, when the trial has another one."""
        return (replace(attempt, call=call) for call in self.options.first_calls(self.trial.instance, attempt))


def _rows(tensor: Tensor) -> Tensor:
    """The tensor without the axes between its first and its last."""
    return replace(tensor, shape=(tensor.shape[0], tensor.shape[-1])) if len(tensor.shape) > 2 else tensor
