"""Which of many further calls leave no hole in the rewrite: told by what each shows alone, with few drafts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate_agent.tools.record.store import merge_recordings
from migrate_agent.tools.types import Draft, Example, Hole, Observations, Recording, Span

ROUNDS = 4
"""Drafts in which holes are looked for whose lines the calls that are left reach: leaving some out may show another line."""
MOST_DRAFTS = 24
"""Of calls that are added again, half by half."""
FEW_DRAFTS = 4
"""The same in a repository that adopts a package, where each draft costs minutes."""
Place = tuple[str, Span, str]
"""File, place and class of a hole."""


def places(holes: Collection[Hole]) -> frozenset[Place]:
    """What tells holes apart from those of another draft of the same files."""
    return frozenset((hole.source, hole.span, hole.code) for hole in holes)


@dataclass
class Growth:
    """Chooses among calls. `draft` gives the rewrite of the units of some calls by what a recording shows, None where there is none."""

    recording: Recording
    draft: Callable[[Sequence[Example], Recording], Draft | None]
    most: int = MOST_DRAFTS
    drafts: int = 0

    def holes_by_unit(self, examples: Sequence[Example], recording: Recording) -> dict[str, frozenset[Place]]:
        """The holes of each of these calls' units by what a recording shows; after a draft of all of them this takes little more time."""
        calls: dict[str, list[Example]] = {}
        for example in examples:
            calls.setdefault(example.unit, []).append(example)
        return {unit: self._holes_in(own, recording) for unit, own in calls.items()}

    def chosen(
        self,
        examples: Sequence[Example],
        apart: Sequence[Observations | None],
        old: frozenset[Place] | None = None,
        first: frozenset[Place] | None = None,
    ) -> Sequence[Example]:
        """The calls that together leave their units no hole more than there is without them. `apart` is what each of them shows; `old` and `first` are
        the holes without them and with all of them, where these are known.

        A call that reaches a line which stands as a stub without it, and is a hole with it, is left out. Where the line was reached before, calls that reach
        it are added again half by half.
        """
        shown = {index: observations for index, observations in enumerate(apart) if observations is not None}
        old_holes = self._holes(examples, {}) if old is None else old
        chosen, doubtful = dict(shown), dict[int, Observations]()
        for number in range(ROUNDS):
            holes = first if first is not None and not number else self._holes([examples[index] for index in chosen], chosen)
            new = holes - old_holes
            if not new:
                break
            reaching = {index for index, observations in chosen.items() if any(reaches(observations, hole) for hole in new)}
            before = {hole for hole in new if reaches(self.recording.observations, hole)}
            for index in reaching or set(chosen):
                observations = chosen.pop(index)
                if not any(reaches(observations, hole) for hole in new - before):
                    doubtful[index] = observations
        else:
            chosen = {}
        return [examples[index] for index in sorted(self._with_more(examples, chosen, doubtful, old_holes))]

    def _with_more(
        self, examples: Sequence[Example], chosen: Mapping[int, Observations], more: Mapping[int, Observations], old_holes: frozenset[Place]
    ) -> Mapping[int, Observations]:
        """The chosen calls, and those of some `more` with which there are no other holes than these old ones."""
        if not more or self.drafts >= self.most:
            return chosen
        together = {**chosen, **more}
        if self._holes([examples[index] for index in more], together) <= old_holes:
            return together
        if len(more) == 1:
            return chosen
        indices = sorted(more)
        for half in (indices[: len(indices) // 2], indices[len(indices) // 2 :]):
            chosen = self._with_more(examples, chosen, {index: more[index] for index in half}, old_holes)
        return chosen

    def _holes(self, examples: Sequence[Example], shown: Mapping[int, Observations]) -> frozenset[Place]:
        """The holes of the draft of these calls' units by what was recorded and what these calls show."""
        if not examples:
            return frozenset()
        return self._holes_in(
            examples, merge_recordings([self.recording, *(Recording(observations=observations) for observations in shown.values())])
        )

    def _holes_in(self, examples: Sequence[Example], recording: Recording) -> frozenset[Place]:
        """The holes of the draft of these calls' units; where there is no draft, one that no other draft has."""
        self.drafts += 1
        draft = self.draft(examples, recording)
        return places(draft.holes) if draft is not None else frozenset({("", Span(0, 0, sys.maxsize, 0), f"no draft {self.drafts}")})


def reaches(observations: Observations, hole: Place) -> bool:
    """Whether something was observed on the lines of a hole."""
    source, span, _ = hole
    return any(span.line <= row.line <= span.end_line for row in observations.get(source, ()))
