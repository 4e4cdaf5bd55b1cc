"""Helpers made to measure: each helper of a mirror is specialised to the calls that the mirror makes of it.

A parameter that no call passes becomes its default, tests that this decides are folded, and what nothing uses any more goes. `made_alike` makes a file
of helpers again by its signatures, so that the verifier knows the project's own helpers in either form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from migrate_agent.tools.rewrite.specialise.derive import derive, made_alike
from migrate_agent.tools.rewrite.specialise.usage import usage_of
from migrate_agent.tools.rewrite.tables.helpers import file_text, with_texts


def render_specialised(names: Iterable[str], users: Iterable[str], fixed: Collection[str] = (), plain: bool = False) -> str:
    """The unformatted text of a file with these helpers, what they need, and the imports, for a tree whose other files are `users`.

    `fixed`: helpers that other texts call as well, and which keep all their parameters. `plain`: the mirror's style.
    """
    return file_text(with_texts(derive(usage_of(users, set(names), fixed))), plain)


__all__ = ["made_alike", "render_specialised"]
