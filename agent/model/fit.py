"""A prompt cut to the model's context: whole parts go, the least important first, and never a piece of one."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_agent.agent.model.wire import estimate
from migrate_agent.prompts import Part


class TooLong(Exception):
    """What must stay does not fit; the text says how much there is and how much room."""


def fit(parts: Sequence[Part], tokens: int) -> str:
    """The text of as many parts as fit into so many (estimated) tokens, in their order, with a word on what was left out.

    Raises `TooLong` where those of rank 0 alone do not fit.
    """
    kept = list(parts)
    while estimate(_text(parts, kept)) > tokens:
        rank, place = max((part.rank, place) for place, part in enumerate(kept))
        if rank == 0:
            raise TooLong(f"the prompt needs about {estimate(_text(parts, kept))} tokens, and the model's context has room for {tokens}")
        del kept[place]
    return _text(parts, kept)


def _text(parts: Sequence[Part], kept: Sequence[Part]) -> str:
    left = [part.name for part in parts if part not in kept]
    note = [f"(Left out for lack of room: {', '.join(left)}.)"] if left else []
    return "\n\n".join([*(part.text for part in kept), *note]) + "\n"
