"""References inside of configuration files, `lr: ${optimizer.lr}`, and values that a script fills in, `shape: ???`, as OmegaConf writes them
(https://omegaconf.readthedocs.io/en/latest/usage.html#variable-interpolation). Read only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

REFERENCE = re.compile(r"\$\{(\.*)([\w./\[\]-]*)\}")
OPEN = "???"
"""What stands for a value that a script sets."""
DEPTH = 12
"""Through how many references a value is followed."""
ABSENT = object()


def resolved(roots: Sequence[Any], root: Any) -> Any:
    """The content of one file with what its references stand for in it, else in those of the others (`roots`); without what is open, and without what no
    file says."""
    return _resolved(root, (), [root, *(other for other in roots if other is not root)], DEPTH)


def _resolved(value: Any, path: tuple[str, ...], roots: Sequence[Any], depth: int) -> Any:
    match value:
        case dict():
            pairs = ((key, _resolved(inner, (*path, str(key)), roots, depth)) for key, inner in value.items())
            return {key: inner for key, inner in pairs if inner is not ABSENT}
        case list():
            items = [_resolved(inner, (*path, str(at)), roots, depth) for at, inner in enumerate(value)]
            return ABSENT if any(inner is ABSENT for inner in items) else items
        case str() if value == OPEN:
            return ABSENT
        case str() if "${" in value:
            return _reference(value, path, roots, depth)
    return value


def _reference(text: str, path: tuple[str, ...], roots: Sequence[Any], depth: int) -> Any:
    """What a text with references in it stands for: the value itself where it is no more than one reference."""
    if match := REFERENCE.fullmatch(text):
        return _looked_up(match, path, roots, depth)
    parts = [_looked_up(match, path, roots, depth) for match in REFERENCE.finditer(text)]
    if not all(isinstance(part, (str, int, float)) for part in parts):
        return ABSENT
    written = iter(parts)
    whole = REFERENCE.sub(lambda match: str(next(written)), text)
    return ABSENT if "${" in whole else whole  # functions of a resolver are not run


def _looked_up(match: re.Match[str], path: tuple[str, ...], roots: Sequence[Any], depth: int) -> Any:
    dots, name = len(match[1]), re.sub(r"\[(\w+)\]", r".\1", match[2])
    steps = (*path[: len(path) - dots], *name.split(".")) if dots else tuple(name.split("."))
    for root in roots[: 1 if dots else None] if depth else ():
        if (value := _at(root, steps)) is not ABSENT:
            return _resolved(value, steps, [root, *(other for other in roots if other is not root)], depth - 1)
    return ABSENT


def _at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value
