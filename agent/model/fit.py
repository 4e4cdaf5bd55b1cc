"""A prompt cut to the model's context: whole parts go, the least important first, and never a piece of one."""

from __future__ import annotations

from collections.abc import Sequence

from migrate_agent.agent.model.wire import estimate
from migrate_agent.prompts import Part


class TooLong(Exception):
    """What must stay does not fit; the text says how much there is and how much room."""


def fit_prompt(parts: Sequence[Part], tokens: int) -> str:
    """The text of as many parts as fit into so many (estimated) tokens, in their order, with a word on what was left out.

    Raises `TooLong` where those of rank 0 alone do not fit.
    """
    remaining = list(parts)
    while estimate(_text(parts, remaining)) > tokens:
        rank, index = max((part.rank, index) for index, part in enumerate(remaining))
        if rank == 0:
            raise TooLong(
                f"the prompt needs about {estimate(_text(parts, remaining))} tokens, and the model's context has room for {tokens}"
            )
        del remaining[index]
    return _text(parts, remaining)


def _text(parts: Sequence[Part], remaining: Sequence[Part]) -> str:
    omitted = [part.name for part in parts if part not in remaining]
    note = [f"(Left out for lack of room: {', '.join(omitted)}.)"] if omitted else []
    return "\n\n".join([*(part.text for part in remaining), *note]) + "\n"
