"""Learns which inputs decide the lengths of packed sequences, by calling the original with other values of each. Used inside the sandbox, on the original's
side.

Calls tell more than the code: lengths come as tensors, lists, arrays of NumPy, sums of masks, and may be sorted on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from torch.overrides import TorchFunctionMode

from migrate_agent.tools.harness.common import input_sampling
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.packed_lengths import Packed, PackedLengths, step_axes
from migrate_agent.tools.harness.torch_side.module import Original, Result
from migrate_agent.tools.harness.torch_side.precision import packed_of
from migrate_agent.tools.verify.original.outputs import attempt, finite_share


class Packings(TorchFunctionMode):
    """A mode that notes what is packed, in a call that raises too, and the longest length and the steps of what packed sequences are made into again."""

    def __init__(self) -> None:
        super().__init__()
        self.packed: list[Packed] = []
        self.padded: list[tuple[int, int]] = []

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`."""
        result = func(*args, **(kwargs or {}))
        match getattr(func, "__name__", ""):
            case "_pack_padded_sequence":
                self.packed.append(packed_of(*args))
            case "_pad_packed_sequence":
                self.padded.append((len(args[1]), int(args[4])))
        return result


def note_lengths(unit: Original, usual: Result) -> None:
    """Note at the leaves of a unit what each has in every batch that decides lengths of packed sequences, and which of these are `filled`. `usual`: the
    result of the recorded call."""
    if not usual.packed:
        return
    probes = Probes(unit, usual.packed, finite_share(usual))
    noted = [probes.lengths_of(number) for number in range(len(unit.leaves))]
    unit.leaves = [replace(leaf, lengths=lengths) for leaf, lengths in zip(unit.leaves, noted, strict=True)]
    unit.filled = frozenset(probes.filled)


def unfilled(unit: Original, result: Result) -> bool:
    """Whether no sequence of a run is as long as the padding, where shapes follow the lengths."""
    return any(number in unit.filled and not packed.is_full for number, packed in enumerate(result.packed))


@dataclass
class Probes:
    """Calls of a unit with other values of one input. `packed` and `finite` are of the recorded call."""

    unit: Original
    packed: Sequence[Packed]
    finite: float
    filled: set[int] = field(default_factory=set)

    def lengths_of(self, number: int) -> PackedLengths | None:
        """What the input of this number has in every batch; None where it decides no length."""
        value = self.unit.leaves[number].value
        if value.dtype.kind not in "biuf" or not value.ndim or not value.size or not np.isfinite(value).all():
            return None
        for packed in dict.fromkeys(self.packed):
            if value.size == len(packed.lengths) and (value == np.rint(value)).all():
                return self._lengths(number, value)
            if value.ndim > 1 and len(packed.lengths) in value.shape[:2] and not input_sampling.is_signal(value):
                axis = next(axis for axis in (1 - packed.axis, packed.axis) if value.shape[axis] == len(packed.lengths))
                return self._counted(number, value, axis)
        return None

    def _lengths(self, number: int, value: Array) -> PackedLengths | None:
        """Of lengths, one for each sample."""
        most = int(value.max())
        decided = self._decided(number, np.full_like(value, most - 1)) if most > 1 else []
        if not decided:
            return None
        rising = np.sort(value.reshape(-1)) if value.min() < most else np.append(most - 1, value.reshape(-1)[1:])
        shortest = np.append(most, np.ones(value.size - 1))
        return self._noted(
            number,
            decided,
            least=min(1, int(value.min())) if self._takes(number, shortest) else int(value.min()),
            falling=not self._takes(number, rising),
        )

    def _counted(self, number: int, value: Array, axis: int) -> PackedLengths | None:
        """Of a mask, or of tokens among which padding is: lengths are counted from it."""
        for padding in dict.fromkeys((value.min(), value.dtype.type(0))):  # what stands for padding
            other = value.copy()
            other.swapaxes(0, 1 - axis)[-1] = padding
            if decided := self._decided(number, other):
                noted = self._noted(number, decided, falling=not self._takes(number, np.flip(value, axis)))
                return replace(noted, batch=axis, padding=float(padding), axes=self._axes(decided[0]))
        return None

    def _noted(self, number: int, decided: Sequence[int], *, falling: bool, least: int = 0) -> PackedLengths:
        most = int(self.unit.leaves[number].value.max())
        return PackedLengths(self._axes(decided[0], most), least, most, not self.filled.isdisjoint(decided), falling)

    def _axes(self, packed: int, most: int | None = None) -> tuple[tuple[int, int], ...]:
        """Where the steps of packed sequences stand; `most`: the largest of the lengths, where an input has these."""
        row = self.packed[packed]
        return step_axes([leaf.value.shape for leaf in self.unit.leaves], row, row.steps if most is None else most)

    def _decided(self, number: int, value: Array) -> list[int]:
        """Which packed sequences have other lengths with this value of the input. What is filled again as far as the longest is noted."""
        self._called(number, value, watch := Packings())
        # A call may raise after it packed: what has fewer steps no longer fits a mask of all steps.
        pairs = list(zip(self.packed, watch.packed, strict=False))
        follows = {longest for longest, steps in watch.padded if longest == steps}
        self.filled |= {at for at, (before, now) in enumerate(pairs) if before.is_full and not now.is_full and max(now.lengths) in follows}
        return [at for at, (before, now) in enumerate(pairs) if before.lengths != now.lengths]

    def _takes(self, number: int, value: Array) -> bool:
        """Whether the unit takes this value of the input, and is as finite with it."""
        result = self._called(number, value)
        return result is not None and finite_share(result) >= self.finite

    def _called(self, number: int, value: Array, watch: Packings | None = None) -> Result | None:
        recorded = input_sampling.recorded_inputs(self.unit.leaves)
        other = np.asarray(value, recorded[number].dtype).reshape(recorded[number].shape)
        values = [*recorded[:number], other, *recorded[number + 1 :]]
        return attempt(partial(self.unit.run, self.unit.state(), values, "eval", watch=watch))
