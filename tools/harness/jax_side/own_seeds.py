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
    initialise = nnx.Rngs.__init__

    def varied(self: nnx.Rngs, *args: Any, **named: Any) -> None:
        initialise(self, *map(of_key, args), **{name: of_key(value) for name, value in named.items()})

    def of_key(value: Any) -> Any:
        return jax.random.fold_in(key, value) if isinstance(value, int) else value

    # The class itself stays: code may ask for its instances, and name it in annotations.
    nnx.Rngs.__init__ = varied  # type: ignore[method-assign]
    try:
        yield
    finally:
        nnx.Rngs.__init__ = initialise  # type: ignore[method-assign]
