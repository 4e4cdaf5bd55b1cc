"""Dictionaries with the words that code looks up: `{'a': 0, 'b': 1, 'c': 2, '<START>': 3}`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from migrate_agent.tools.record.guessing.objects.looked_up_words import table_with
from migrate_agent.tools.record.guessing.trials.trial import Attempt, Outcome, set_call, set_init


def words_asked(attempt: Attempt, outcome: Outcome, init: Collection[str]) -> Iterator[Attempt]:
    """The attempt with the word in the argument that lacks it: the one of that name, else those that the object was computed from. `init`: what the
    constructor takes."""
    for owner, word in outcome.place.words:
        for name in dict.fromkeys((owner, *outcome.place.init)):
            text = dict(attempt.init).get(name, "[]" if name in init else None)
            if isinstance(text, str) and (table := table_with(text, word)) is not None:
                yield set_init(attempt, name, table)
        for name in dict.fromkeys((owner, *outcome.place.call)):
            text = dict(attempt.call or ()).get(name)
            if isinstance(text, str) and (table := table_with(text, word)) is not None:
                yield set_call(attempt, name, table)
