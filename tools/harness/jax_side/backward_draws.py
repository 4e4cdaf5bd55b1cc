"""Pairs the draws of a custom backward pass with those of the forward pass by their keys. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.harness.common.random_streams import KINDS, Stream


class Keys(NamedTuple):
    """The keys of the forward pass: `data`, uint32 `[draws, words]`, and the `number` of each draw, int32 `[draws]`.

    A draw in a loop has one number and many keys.
    """

    data: Any
    number: Any


def key_data(key: Any) -> Any:
    """A key's words, uint32."""
    return jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key


class Told(NamedTuple):
    """A draw as the running program reports it: `what` was known when it was traced, the words of its key, and the rate of a mask."""

    what: Any
    key: tuple[int, ...]
    rate: float | None = None


@dataclass
class Heard:
    """Collects draws while programs run, for each iteration of a loop and each row of a `vmap`. Draws with equal keys are one draw."""

    found: set[Told] = field(default_factory=set)

    def hear(self, description: Any, key: Any, rate: Any = None) -> None:
        """Add a callback to the traced program that reports a draw when it runs."""

        def told(data: Any, rate: Any) -> None:
            rate_number = float(np.asarray(rate).item()) if rate is not None and np.size(rate) == 1 else None
            self.found.update(Told(description, tuple(map(int, row)), rate_number) for row in np.asarray(data).reshape(-1, data.shape[-1]))

        # Keys are tracers here; only the running program knows them.
        jax.debug.callback(told, key_data(key), rate)

    def take(self) -> set[Told]:
        """The draws reported since the last call."""
        # Callbacks run asynchronously.
        barrier: Any = jax.effects_barrier
        barrier()
        draws, self.found = self.found, set()
        return draws

    def keys(self) -> Keys | None:
        """The keys by number; None without any, and where keys have several lengths."""
        rows = sorted((draw.what, draw.key) for draw in self.take())
        if len({len(data) for _, data in rows}) != 1:
            return None
        numbers, data = zip(*rows, strict=True)
        return Keys(jax.device_put(np.array(data, np.uint32)), jax.device_put(np.array(numbers, np.int32)))


@dataclass
class Again(Stream):
    """The stream of a backward pass.

    A draw with the key of a draw of `forward` repeats it; a draw with another key gives other numbers,
    and a mask of zeros. Without `keys`, it is a new stream.
    """

    forward: Stream = field(default_factory=lambda: Stream(0))
    keys: Keys | None = None
    key: Any = None

    def draw(self, kind: str, shape: Sequence[int]) -> Any:
        """As `Stream.draw`."""
        repeated = super().draw(kind, shape)
        return repeated if self.keys is None else self._drawn(kind, shape, Stream(self.seed + 1).draw(kind, shape))

    def mask(self, shape: Sequence[int], rate: float | None) -> Any:
        """As `Stream.mask`."""
        repeated = super().mask(shape, rate)
        return repeated if self.keys is None or self.comparison(rate) else self._drawn("bernoulli", shape, False)

    def _drawn(self, kind: str, shape: Sequence[int], default: Any) -> Any:
        """The forward pass's draw of this kind and shape with the same key, else `default`."""
        # A second stream repeats the draws by order; storing them all would keep the forward pass's
        # arrays alive.
        again = Stream(self.forward.seed, self.forward.drawing, self.forward.kept, customs=self.forward.customs)
        for number, draw in enumerate(self.forward.draws):
            if draw.kind in (*KINDS, "bernoulli"):
                values = again.mask(draw.shape, draw.rate) if draw.kind == "bernoulli" else again.draw(draw.kind, draw.shape)
                if draw[:2] == (kind, tuple(shape)):
                    default = jnp.where(self._is(number), values, default)
        return default

    def _is(self, number: int) -> Any:
        assert self.keys is not None
        return jnp.any((self.keys.number == number) & jnp.all(self.keys.data == key_data(self.key), axis=-1))
