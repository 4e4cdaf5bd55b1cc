"""Recorded calls on less: the verifier repeats an example hundreds of times, and a script shows a batch as large as it trains with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

Tensors = Mapping[str, Any]
SLOW = 0.005
"""Seconds of computing from which a call is tried on less."""
LARGE = 32
"""Sizes of axes from which on half is left out."""
FEWEST = 2
"""Samples that stay of a batch."""
MOST_TRIES = 10


class TimedCall(NamedTuple):
    """A call that ran: seconds of computing, and how many axes each tensor that it gave has."""

    seconds: float
    ranks: tuple[int, ...]


def smaller(call: str, tensors: Tensors, whole: TimedCall, run: Callable[[Tensors], TimedCall | None]) -> Tensors:
    """The tensors of a slow call, of which parts are left out where it runs on the rest too: of the batch first, then half of the largest axis, again
    and again. `run` tries a call, and gives `None` where that raises. Tensors that a call does not name stay."""
    named = frozenset(re.findall(r"""_tensors\[["']([^"']+)["']\]""", call)) & tensors.keys()
    kept, last, tried = tensors, whole, 0
    refused: set[int] = set()
    while last.seconds > SLOW and tried < MOST_TRIES:
        cut = next(_cuts({name: kept[name] for name in sorted(named)}, refused), None)
        if cut is None:
            break
        size, parts = cut
        tried += 1
        trial = run({**kept, **parts})
        if trial is None or trial.ranks != whole.ranks or trial.seconds > last.seconds:
            refused.add(size)
        else:
            kept, last = {**kept, **parts}, trial
    return kept


def _cuts(tensors: Tensors, refused: set[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The size that is cut, with the tensors that have it, all cut alike."""
    batches = {tensor.shape[0] for tensor in tensors.values() if tensor.ndim > 1}
    for size in sorted(batches - refused, reverse=True):
        if size > FEWEST and len(batches) == 1:
            yield size, {name: tensor[:FEWEST].clone() for name, tensor in tensors.items() if tensor.ndim and tensor.shape[0] == size}
    others = {size for tensor in tensors.values() for size in tensor.shape[1:] if size >= LARGE}
    for size in sorted(others - refused, reverse=True):
        yield size, {name: _halved(tensor, size) for name, tensor in tensors.items() if size in tensor.shape[1:]}


def _halved(tensor: Any, size: int) -> Any:
    for axis in range(1, tensor.ndim):
        if tensor.shape[axis] == size:
            tensor = tensor.narrow(axis, 0, size // 2)
    return tensor.clone().contiguous()
