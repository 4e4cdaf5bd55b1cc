"""Constructions as deep as the repository's own reach, where a depth that was made small leaves parts of the model out: `(depth - 2) // 6` blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from migrate_agent.tools.record.guessing.trials.trial import Attempt
from migrate_agent.tools.record.guessing.values import Fields, Value

SMALL = "2"
"""What a depth was made."""
DEPTHS = (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 22, 26, 28)
"""In the place of a small depth, up to the one that the repository has."""


class Depths(Protocol):
    """What knows the repository's settings and constructions."""

    @property
    def depths(self) -> Mapping[str, int]:
        """Settings that were made small because they say how often something is repeated → what the repository has."""

    def sites(self, settings: Mapping[str, int]) -> list[dict[str, str]]:
        """Arguments of the repository's constructions of the class, with these in place of the small settings."""


def whole_depth(attempt: Attempt, options: Depths) -> tuple[Attempt, Attempt] | None:
    """The attempt, and what it is with the repository's own depths; None where it has no small ones.

    Names alone may have suggested a small depth. Then both are what the repository constructs.
    """
    for arguments in ({}, *options.sites({})) if options.depths else ():
        small = replace(attempt, init=tuple({**dict(attempt.init), **arguments}.items()))
        if (whole := _with_depths(small, options, options.depths)) is not None:
            return small, whole
    return None


def between(attempt: Attempt, options: Depths) -> Iterator[Attempt]:
    """The attempt with depths between the small ones and the repository's own, the least first."""
    for depth in DEPTHS:
        depths = {name: min(depth, own) for name, own in options.depths.items()}
        deeper = _with_depths(attempt, options, depths) if depths != dict(options.depths) else None
        yield from (deeper,) if deeper is not None else ()


def _with_depths(attempt: Attempt, options: Depths, depths: Mapping[str, int]) -> Attempt | None:
    init = dict(attempt.init)
    filled = {name: _filled(value, depths) for name, value in attempt.init}
    if filled == init:
        small = next((at for at, arguments in enumerate(options.sites({})) if arguments.items() <= init.items()), None)
        deeper = options.sites(depths) if small is not None else []
        filled = {**init, **deeper[small]} if small is not None and small < len(deeper) else init
    return replace(attempt, init=tuple(filled.items())) if filled != init else None


def _filled(value: Value, depths: Mapping[str, int]) -> Value:
    """A configuration with these in the place of small depths."""
    if not isinstance(value, Fields):
        return value
    items = ((name, str(depths[name]) if name in depths and item == SMALL else _filled(item, depths)) for name, item in value.items)
    return replace(value, items=tuple(items))
