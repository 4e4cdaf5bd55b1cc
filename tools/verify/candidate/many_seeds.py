"""Several jobs of one candidate in one process, for a measurement of the verifier with many seeds. Used inside the sandbox.

What does not depend on the seed is made once: the module, and the programs that are traced and compiled.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

Made = TypeVar("Made")
_SHARED: ContextVar[dict[str, Any] | None] = ContextVar("what further jobs go on with", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Within, jobs of one candidate go on with what the first of them made: states and inputs are arguments of its programs."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def first(key: str, made: Made) -> Made:
    """What was made first under this key within `sharing`; elsewhere what is given."""
    shared = _SHARED.get()
    found: Made = made if shared is None else shared.setdefault(key, made)
    return found


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[Any]:
    """Job entry. `arguments`: the `entry` of all, and the `inputs` of each by name. Input `jobs` holds the arguments of each; job N writes to `N/`."""
    module, _, name = arguments["entry"].partition(":")
    entry = getattr(importlib.import_module(module), name)
    found = []
    with sharing():
        for index, (each, names) in enumerate(zip(json.loads(inputs["jobs"].read_text()), arguments["inputs"], strict=True)):
            (output / str(index)).mkdir()
            found.append(entry(each, {key: inputs[name] for key, name in names.items()}, output / str(index)))
    return found
