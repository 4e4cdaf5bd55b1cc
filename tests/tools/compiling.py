"""Compiling less in tests that run many small programs once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax


@contextmanager
def unoptimised() -> Iterator[None]:
    """XLA leaves most of its optimisations out, which compiles several times as fast; results are the same up to rounding."""
    before = jax.config.read("jax_disable_most_optimizations")  # type: ignore[no-untyped-call]
    jax.config.update("jax_disable_most_optimizations", True)  # type: ignore[no-untyped-call]
    yield
    jax.config.update("jax_disable_most_optimizations", before)  # type: ignore[no-untyped-call]
