"""Draws of a backward pass that the candidate defines: those of its forward pass again, told by their keys. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.harness.common.random_streams import KINDS, Stream


class Keys(NamedTuple):
    """Which keys the forward pass drew with: `data`, uint32 `[draws, words]`, and the `number` of each draw, int32 `[draws]`. A draw in a loop has
    one number and many keys."""

    data: Any
    number: Any


def key_data(key: Any) -> Any:
    """A key's words, uint32."""
    return jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key


class Told(NamedTuple):
    """A draw, as the running program tells it: `what` its trace knew of it, the words of its key, and the rate of a mask."""

    what: Any
    key: tuple[int, ...]
    rate: float | None = None


@dataclass
class Heard:
    """Collects draws while programs run: each time anew in a loop, for each row under `vmap`. Draws with the same key are the same."""

    found: set[Told] = field(default_factory=set)

    def hear(self, what: Any, key: Any, rate: Any = None) -> None:
        """Have the program that is traced tell of a draw when it runs."""

        def told(data: Any, rate: Any) -> None:
            known = float(np.asarray(rate).item()) if rate is not None and np.size(rate) == 1 else None
            self.found.update(Told(what, tuple(map(int, row)), known) for row in np.asarray(data).reshape(-1, data.shape[-1]))

        jax.debug.callback(told, key_data(key), rate)

    def take(self) -> set[Told]:
        """What was told since the last time, once every program has run."""
        barrier: Any = jax.effects_barrier
        barrier()
        found, self.found = self.found, set()
        return found

    def keys(self) -> Keys | None:
        """The keys by number; None where nothing was told, or keys are of several lengths."""
        rows = sorted((told.what, told.key) for told in self.take())
        if len({len(data) for _, data in rows}) != 1:
            return None
        numbers, data = zip(*rows, strict=True)
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
        return found if self.keys is None or self.comparison(rate) else self._drawn("bernoulli", shape, False)

    def _drawn(self, kind: str, shape: Sequence[int], found: Any) -> Any:
        """What the forward pass drew of this kind and shape with the same key, else `found`."""
        again = Stream(self.forward.seed, self.forward.drawing, self.forward.kept, customs=self.forward.customs)
        for number, draw in enumerate(self.forward.draws):
            if draw.kind in (*KINDS, "bernoulli"):
                values = again.mask(draw.shape, draw.rate) if draw.kind == "bernoulli" else again.draw(draw.kind, draw.shape)
                if draw[:2] == (kind, tuple(shape)):
                    found = jnp.where(self._is(number), values, found)
        return found

    def _is(self, number: int) -> Any:
        assert self.keys is not None
        return jnp.any((self.keys.number == number) & jnp.all(self.keys.data == key_data(self.key), axis=-1))
