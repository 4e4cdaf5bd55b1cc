"""Random numbers in compiled loops: a step is traced once, and each time it runs it draws what torch's loop draws then. Used inside the sandbox."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.harness.common.random_streams import Draw, Stream


class Request(NamedTuple):
    """What a step asks a stream for: numbers of a kind, or a mask (`kind` is empty) of a rate."""

    kind: str
    shape: tuple[int, ...]
    rate: float | None = None


@dataclass
class Requests(Stream):
    """Writes down what one step asks for."""

    asked: list[Request] = field(default_factory=list)

    def draw(self, kind: str, shape: Sequence[int]) -> Any:
        """Numbers that nobody uses."""
        self.asked.append(Request(kind, tuple(int(size) for size in shape)))
        return super().draw(kind, shape)

    def mask(self, shape: Sequence[int], rate: float | None) -> Any:
        """A mask that nobody uses."""
        self.asked.append(Request("", tuple(int(size) for size in shape), rate))
        self.draws.append(Draw("bernoulli", self.asked[-1].shape, rate))
        return True


class LoopKeys:
    """The keys that running loops draw with: by the loop and the number of the draw in it, each key's steps."""

    def __init__(self) -> None:
        self.steps: dict[tuple[int, int], dict[bytes, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.places = 0

    def hear(self, draw_number: tuple[int, int], step: Any, key: Any) -> None:
        """Add a callback to the traced program that reports the key of a step when it runs."""

        def told(step: Any, data: Any) -> None:
            for row in np.asarray(data).reshape(-1, data.shape[-1]):
                self.steps[draw_number][row.tobytes()].add(int(np.asarray(step).reshape(-1)[0]))

        jax.debug.callback(told, step, key)

    def take_repeated(self) -> bool:
        """Whether two steps of a loop drew with one key since the last call: they drew the same numbers."""
        if not self.places:
            return False
        barrier: Any = jax.effects_barrier
        barrier()
        heard = list(self.steps.values())
        self.steps.clear()
        return any(len(steps) > 1 for keys in heard for steps in keys.values())


@dataclass
class Repeated(Stream):
    """Gives a step the rows of tables, one table for each request and in it one row for each step."""

    tables: Sequence[Any] = ()
    step: Any = 0
    place: int = 0
    """The number of the loop."""
    position: int = 0

    def _row(self) -> Any:
        table, self.position = self.tables[self.position], self.position + 1
        return jax.lax.dynamic_index_in_dim(jnp.asarray(table), self.step, keepdims=False)

    def draw(self, kind: str, shape: Sequence[int]) -> Any:
        """The numbers of this step."""
        self.draws.append(Draw(kind, tuple(int(size) for size in shape)))
        return self._row()

    def mask(self, shape: Sequence[int], rate: float | None) -> Any:
        """The mask of this step."""
        self.draws.append(Draw("bernoulli", tuple(int(size) for size in shape), rate))
        return self._row()


def tables(stream: Stream, requests: Sequence[Request], steps: int) -> list[Any]:
    """For each request the numbers of all steps, [steps, …], drawn from the stream in the order in which torch's loop asks for them."""
    rows = [[_answer(stream, request) for request in requests] for _ in range(steps)]
    return [_stacked(column) for column in zip(*rows, strict=True)]


def _answer(stream: Stream, request: Request) -> Any:
    return stream.draw(request.kind, request.shape) if request.kind else stream.mask(request.shape, request.rate)


def _stacked(values: Sequence[Any]) -> Any:
    return (
        np.stack(values) if all(isinstance(value, (bool, np.ndarray)) for value in values) else jnp.stack([jnp.asarray(v) for v in values])
    )


def static_steps(lower: Any, upper: Any) -> int | None:
    """The number of steps of a loop; `None` where a running program alone knows it."""
    if isinstance(lower, jax.core.Tracer) or isinstance(upper, jax.core.Tracer):
        return None
    return max(int(upper) - int(lower), 0)
