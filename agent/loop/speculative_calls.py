"""The first call of a model for units whose turn is still to come, while others are at work. The answer waits in the cache of calls.

A model is asked early only where everything that the unit needs is accepted already: no call is paid for a unit that will be blocked.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from migrate_agent.agent.loop.context import Context, Situation
from migrate_agent.agent.loop.drafts import draft_unit
from migrate_agent.agent.model.interface import Attempt, Request
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.scan.plan import plan
from migrate_agent.tools.types import Draft, Unit


class EarlyCalls:
    """At most `jobs - 1` calls at a time, and one for each unit.

    The threads are daemons that nobody waits for: a call may take minutes, and the caller's cache keeps an answer that comes too late.
    """

    def __init__(self, jobs: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, jobs - 1))
        self._begun: set[int] = set()
        self._lock = threading.Lock()

    def ask(self, context: Context, situation: Situation) -> None:
        """Begin with the call that `fill` will make for the unit, unless it was begun, or the unit needs one that is not accepted."""
        unit = context.unit_at(situation.position)
        needs = {needed.id for needed in plan(context.inventory, (unit.id,))} - {unit.id}
        with self._lock:
            if context.model is None or not needs <= set(situation.accepted) or situation.position in self._begun:
                return
            self._begun.add(situation.position)
        draft = draft_unit(context, situation)
        if draft.holes:
            threading.Thread(target=self._call, args=(context, unit, draft), name="early-call", daemon=True).start()

    def _call(self, context: Context, unit: Unit, draft: Draft) -> None:
        with self._free, suppress(Exception):  # an error comes up again in the unit's turn, and is reported there
            assert context.model is not None
            context.model.fill(first_request(context, unit, draft))


def first_request(context: Context, unit: Unit, draft: Draft) -> Request:
    """What `fill` shows of a unit whose rules' draft has holes, before anything else was tried."""
    paths = sorted({unit.source, *(hole.source for hole in draft.holes)})
    return Request(
        unit,
        draft,
        1,
        None,
        {path: (context.original / path).read_text(encoding="utf-8-sig") for path in paths},
        context.inventory,
        draft,
        context.recording.observations.get(unit.source, {}),
        examples_of(context.recording, unit.id),
        (Attempt(1, "rules"),),
    )
