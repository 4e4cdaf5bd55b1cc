"""Seeds that a constructor gives streams of its own: each of several constructions draws other numbers. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
from flax import nnx


@contextmanager
def varied_seeds(key: Any) -> Iterator[None]:
    """Let `nnx.Rngs(seed)` of a plain number be streams that depend on `key` too, as `torch.manual_seed` is varied on torch's side."""
    streams = nnx.Rngs

    def varied(default: Any = None, **named: Any) -> nnx.Rngs:
        seeds = {name: value for name, value in (("default", default), *named.items()) if value is not None}
        seeded = {name: jax.random.fold_in(key, value) if isinstance(value, int) else value for name, value in seeds.items()}
        return streams(**seeded)

    nnx.Rngs = varied  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        nnx.Rngs = streams  # type: ignore[misc]
