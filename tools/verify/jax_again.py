"""Draws of a backward pass that the candidate defines: those of its forward pass again, told by their keys. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.verify.streams import KINDS, Stream


class Keys(NamedTuple):
    """Which keys the forward pass drew with: `data`, uint32 `[draws, words]`, and the `number` of each draw, int32 `[draws]`. A draw in a loop has
    one number and many keys."""

    data: Any
    number: Any


def key_data(key: Any) -> Any:
    """A key's words, uint32."""
    return jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key


@dataclass
class Heard:
    """Collects the keys while a program runs."""

    found: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)

    def hear(self, number: int, key: Any) -> None:
        """Have the running program tell the key of a draw of this number."""

        def told(data: Any) -> None:
            self.found.update((number, tuple(map(int, row))) for row in np.asarray(data).reshape(-1, data.shape[-1]))

        jax.debug.callback(told, key_data(key))

    def keys(self) -> Keys | None:
        """All that was told, once every program has run; None where nothing was, or keys are of several lengths."""
        barrier: Any = jax.effects_barrier
        barrier()
        if len({len(data) for _, data in self.found}) != 1:
            return None
        numbers, data = zip(*sorted(self.found), strict=True)
        return Keys(jax.device_put(np.array(data, np.uint32)), jax.device_put(np.array(numbers, np.int32)))


@dataclass
class Again(Stream):
    """What a backward pass draws. With the key of a draw of `forward` it is that draw; with another one other numbers, and a mask of zeros.

    Where `keys` are not known, it is the draws of a new stream.
    """

    forward: Stream = field(default_factory=lambda: Stream(0))
    keys: Keys | None = None
    key: Any = None

    def draw(self, kind: str, shape: Sequence[int]) -> Any:
        """As `Stream.draw`."""
        found = super().draw(kind, shape)
        return found if self.keys is None else self._drawn(kind, shape, Stream(self.seed + 1).draw(kind, shape))

    def mask(self, shape: Sequence[int], rate: float | None) -> Any:
        """As `Stream.mask`."""
        found = super().mask(shape, rate)
        return found if self.keys is None else self._drawn("bernoulli", shape, False)

    def _drawn(self, kind: str, shape: Sequence[int], found: Any) -> Any:
        """What the forward pass drew of this kind and shape with the same key, else `found`."""
        again = Stream(self.forward.seed, self.forward.drawing, self.forward.kept)
        for number, draw in enumerate(self.forward.draws):
            if draw.kind in (*KINDS, "bernoulli"):
                values = again.mask(draw.shape, draw.rate) if draw.kind == "bernoulli" else again.draw(draw.kind, draw.shape)
                if draw[:2] == (kind, tuple(shape)):
                    found = jnp.where(self._is(number), values, found)
        return found

    def _is(self, number: int) -> Any:
        assert self.keys is not None
        return jnp.any((self.keys.number == number) & jnp.all(self.keys.data == key_data(self.key), axis=-1))
