"""Runs several jobs of one candidate in one process, to measure the verifier with many seeds. Used inside the sandbox.

The module and its compiled programs do not depend on the seed, and are made once.
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
    """A context in which jobs of one candidate share modules and programs: states and inputs are arguments of the programs."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def first(key: str, value: Made) -> Made:
    """The first value that was stored under this key inside `sharing`; outside of it, `value` itself."""
    shared = _SHARED.get()
    stored: Made = value if shared is None else shared.setdefault(key, value)
    return stored


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[Any]:
    """Job entry. `arguments`: the `entry` of all, and the `inputs` of each by name. Input `jobs` holds the arguments of each; job N writes to `N/`."""
    module, _, name = arguments["entry"].partition(":")
    entry = getattr(importlib.import_module(module), name)
    results = []
    with sharing():
        for index, (job_arguments, names) in enumerate(zip(json.loads(inputs["jobs"].read_text()), arguments["inputs"], strict=True)):
            (output / str(index)).mkdir()
            results.append(entry(job_arguments, {key: inputs[name] for key, name in names.items()}, output / str(index)))
    return results
