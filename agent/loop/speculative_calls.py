"""The first call of a model for units whose turn is still to come, while others are at work: the answer waits in the run's books.

Only for units of which all that they need is accepted already, so that none is paid for a unit that will be blocked.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from migrate_agent.agent.loop.drafts import draft_at
from migrate_agent.agent.model.interface import Attempt, Request
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.scan.plan import plan
from migrate_agent.tools.types import Draft, Unit

if TYPE_CHECKING:
    from migrate_agent.agent.loop.context import Context


class EarlyCalls:
    """At most `jobs - 1` calls at a time, each unit once. Nobody waits for their threads: what they get is kept where the call is made."""

    def __init__(self, jobs: int) -> None:
        self._free = threading.BoundedSemaphore(max(1, jobs - 1))
        self._asked: set[int] = set()
        self._lock = threading.Lock()

    def ask(self, context: Context, place: int, accepted: Sequence[str], lost: Collection[str], texts: Mapping[str, str]) -> None:
        """Begin with the call that `fill` will make for the unit at this place, unless that was begun, or it needs one that is not accepted."""
        unit = context.inventory.unit(context.plan.order[place])
        needed = {each.id for each in plan(context.inventory, (unit.id,))} - {unit.id}
        with self._lock:
            if context.model is None or not needed <= set(accepted) or place in self._asked:
                return
            self._asked.add(place)
        draft = draft_at(context, place, accepted, lost, texts)
        if draft.holes:
            threading.Thread(target=self._call, args=(context, unit, draft), name="early-call", daemon=True).start()

    def _call(self, context: Context, unit: Unit, draft: Draft) -> None:
        with self._free, suppress(Exception):  # whatever went wrong comes up again in the unit's turn, and is told there
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
        {path: (context.original / path).read_text(encoding="utf-8") for path in paths},
        context.inventory,
        draft,
        context.recording.observations.get(unit.source, {}),
        examples_of(context.recording, unit.id),
        (Attempt(1, "rules"),),
    )
