"""Syntax trees in several threads. Standard library only."""

from __future__ import annotations

import ast
import functools
import threading
from typing import Any

_LOCK = threading.RLock()


def build_one_at_a_time() -> None:
    """Let one thread after the other build a syntax tree, from now on.

    CPython counts the depth of the tree that it builds for all threads together. JAX has a callback of the garbage collector, in which another thread
    may take over; where that one builds a tree as well, both raise `SystemError: AST constructor recursion depth mismatch`
    (https://github.com/python/cpython/issues/106905; seen with 3.11.7).
    """
    if hasattr(ast.parse, "__wrapped__"):
        return
    parse = ast.parse

    @functools.wraps(parse)
    def parse_alone(*args: Any, **kwargs: Any) -> Any:
        with _LOCK:
            return parse(*args, **kwargs)

    ast.parse = parse_alone
