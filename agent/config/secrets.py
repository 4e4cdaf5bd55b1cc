"""The user's keys, as this process's environment names them, and texts without them.

No key is handed to a sandbox or written by us; this is the second line, for texts that others wrote: a server that quotes the key it refuses,
a model that repeats it, a recorded command that passed it to a constructor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_ID)?$", re.IGNORECASE)
SHORTEST = 12
"""Shorter values are words that stand in other texts too."""
IN_URL = re.compile(r"://([^/@\s]+)@")
HIDDEN = "[key]"


def secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of variables that are named like keys, and what stands before the `@` of any URL; longest first. Paths are no keys."""
    named = [value for name, value in environment.items() if NAMES.search(name)]
    inside = [
        part for value in environment.values() for userinfo in IN_URL.findall(value) for part in (userinfo, userinfo.rpartition(":")[2])
    ]
    texts = {value for value in (*named, *inside) if len(value) >= SHORTEST and not re.search(r"\s|^[/.~]", value)}
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def redacted(text: str) -> str:
    """The text with `[key]` in place of each of the user's keys."""
    for secret in secrets(os.environ):
        text = text.replace(secret, HIDDEN)
    return text
