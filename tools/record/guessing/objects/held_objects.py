"""Methods of the plain objects that a call is handed, such as a cache, and that it gives, such as a distribution. Used inside the sandbox."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.record.guessing.trials.trial import required

MOST_PARTS = 4
"""Values of a tuple or a list that a call gives which are looked at."""


def methods_after(arguments: Mapping[str, Any], result: Any, base: type, folder: str) -> Iterator[str]:
    """Names of the methods, those without arguments, of the objects of the repository below the folder among the arguments of a call by name and in its
    result: `cache:step`, `:mode`, `:1.mode`. None of `base` (`nn.Module`), which is called itself."""
    for name, value in arguments.items():
        if methods.is_plain(value, base, folder):
            yield from (f"{name}{methods.AFTER}{member}" for member in _without_arguments(type(value)))
    parts = enumerate(result[:MOST_PARTS]) if isinstance(result, (list, tuple)) else ()
    for path, value in (("", result), *((f"{number}.", part) for number, part in parts)):
        if methods.is_plain(value, base, folder):
            yield from (f"{methods.AFTER}{path}{member}" for member in _without_arguments(type(value)))


def _without_arguments(cls: type) -> Iterator[str]:
    for member in (*methods.public_methods(cls, object), *methods.further_methods(cls, object)):
        if member.endswith(methods.SETTER):
            continue
        if methods.is_property(cls, member) or not required(list(inspect.signature(methods.unbound(cls, member)).parameters.values())[1:]):
            yield member
