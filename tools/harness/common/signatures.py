"""Signatures as data, so that the two sides can be compared outside of their processes. Imports no framework."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from migrate_agent.tools.harness.common import methods

PLAIN = (type(None), bool, int, float, str)


def describe(cls: type, method: str, base: type) -> list[dict[str, str]] | None:
    """Parameters of `cls.method` without `self`: name, kind, default (its text, `object` where it is no plain value, "" where there is none).

    An empty list where the method is `base`'s own; None where another library defines it, whose signature is not the user's to keep.
    """
    owner = next((base_class for base_class in cls.__mro__ if method in vars(base_class)), object)
    if owner in (base, object):
        return []
    if owner.__module__.partition(".")[0] in ("torch", "flax", "jax"):
        return None
    # The module of a function has the function's own parameters, those that it holds included.
    described = getattr(cls, "described", None) if method != "__init__" else None
    return _rows(list(inspect.signature(getattr(cls, method)).parameters.values())[1:] if described is None else described)


def describe_methods(cls: type, base: type) -> dict[str, list[dict[str, str]]]:
    """The parameters of each public method by its name, as `describe` gives them; properties have none."""
    rows = {}
    for name in methods.public_methods(cls, base):
        try:
            rows[name] = _rows(list(inspect.signature(methods.unbound(cls, name)).parameters.values())[1:])
        except (TypeError, ValueError):  # a function of C, whose parameters Python does not know
            continue
    return rows


def _rows(parameters: Sequence[inspect.Parameter]) -> list[dict[str, str]]:
    return [{"name": item.name, "kind": item.kind.name, "default": _default(item.default)} for item in parameters]


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, PLAIN) and type(value) in PLAIN:
        return repr(value)
    if isinstance(value, (tuple, list)) and all(type(item) in PLAIN for item in value):
        return repr(tuple(value))
    return "object"
