"""Whether code asks for gradients while it runs, so that torch must follow its operators though nobody differentiates the result."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

ASKING = frozenset({"autograd", "grad", "backward", "jacobian", "hessian", "vjp", "jvp"})
"""Names in such code."""


_KNOWN: dict[Any, bool] = {}


def asks_gradients(cls: type) -> bool:
    """Whether the methods of a class, its bases but torch's own, or functions beside them ask for gradients."""
    if cls not in _KNOWN:
        codes = (code for function in _functions(cls) for code in _codes(function.__code__))
        _KNOWN[cls] = any(name in ASKING for code in codes for name in code.co_names)
    return _KNOWN[cls]


def _functions(cls: type) -> Iterator[FunctionType]:
    own = [base for base in cls.__mro__ if base.__module__.partition(".")[0] not in ("torch", "builtins")]
    spaces = [vars(base) for base in own] + [vars(sys.modules[base.__module__]) for base in own if base.__module__ in sys.modules]
    for space in spaces:
        for value in list(space.values()):
            function = getattr(value, "__wrapped__", getattr(value, "__func__", value))
            if isinstance(function, FunctionType) and function.__module__ in {base.__module__ for base in own}:
                yield function


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)
