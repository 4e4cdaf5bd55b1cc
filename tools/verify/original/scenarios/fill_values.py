"""Finds numbers of the original that have no effect on ordinary inputs (the fill value of masked scores), and inputs on which they have.

Used inside the sandbox, on the original's side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from migrate_agent.tools.harness.common import budgets, tolerances
from migrate_agent.tools.harness.common.compare_arrays import rms
from migrate_agent.tools.harness.common.input_sampling import Array, Leaf, is_signal, single
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.harness.torch_side.precision import OperatorMode
from migrate_agent.tools.verify.original.outputs import attempt, tipped

Number = tuple[str, float]
"""An operator, and a number among its arguments."""
Run = Callable[[int, Sequence[Array], Any], Result]
"""Runs the original on the state of this seed and these inputs, under this dispatch mode."""
FACTORS = (1.1, 1 / 1.1)
FILLING = frozenset(
    "masked_fill scalar_tensor lift_fresh full full_like new_full fill mul clamp clamp_min clamp_max hardtanh threshold".split()
)
"""Operators whose numbers replace other values; the product of a number and a mask does so too."""


class Numbers(OperatorMode):  # type: ignore[no-untyped-call]
    """A mode that records numbers larger than all other arguments of their operator; one of them may be multiplied by `factor`."""

    def __init__(self, moved: Number | None = None, factor: float = 1.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.moved, self.factor = moved, factor
        self.found: dict[Number, None] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Run `func`, perhaps with another number."""
        name, size = func.__name__.partition(".")[0].rstrip("_"), max(map(_size, args), default=0.0)
        if name == "mul" and not all(_is_mask(value) for value in args if isinstance(value, torch.Tensor)):
            return func(*args, **(kwargs or {}))
        args = tuple(self._seen(name, size, value, spec) for value, spec in zip(args, func._schema.arguments, strict=False))
        result = func(*args, **(kwargs or {}))
        # A tensor made of a Python number (`torch.tensor(-1e9)`) comes as this operator's result,
        # not as an argument.
        if name == "lift_fresh" and not result.ndim and result.dtype == torch.float64:
            result.fill_(self._seen(name, 0.0, result.item()))
        return result

    def _seen(self, name: str, size: float, value: Any, spec: Any = None) -> Any:
        if name not in FILLING or type(value) not in (int, float) or (spec is not None and str(spec.type) not in ("number", "Tensor")):
            return value
        number = (name, float(value))
        # Smaller numbers have an effect on ordinary inputs, and larger ones cannot be reached by
        # scaling the inputs.
        if budgets.REACH[0] <= abs(value) <= budgets.REACH[1] and size < abs(value):
            self.found.setdefault(number)
        return value * self.factor if number == self.moved else value


def _is_mask(value: torch.Tensor) -> bool:
    return bool(((value == 0) | (value == 1)).all())


def _size(value: Any) -> float:
    """The largest finite magnitude in a tensor of floats; 0 for all else."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
        return 0.0
    return float(torch.nan_to_num(value.detach(), 0.0, 0.0, 0.0).abs().max())


def hidden(run: Run, values: Sequence[Array]) -> list[Number]:
    """The numbers whose change by `FACTORS` changes no output for these inputs."""
    watch = Numbers()
    usual = attempt(partial(run, 0, values, watch))
    if usual is None:
        return []
    return [number for number in watch.found if not any(_decides(run, 0, values, usual, number, factor, _differs) for factor in FACTORS)]


def reaching(
    run: Run, leaves: Sequence[Leaf], drawn: Mapping[int, Sequence[Array]], number: Number
) -> tuple[int, list[list[Array]]] | None:
    """A seed, and its inputs scaled just past and just below the scale at which a larger `number` changes an output; None where none does."""
    factor = budgets.REACH_FACTOR

    def decides(seed: int, scale: float) -> bool:
        values = _scaled(leaves, drawn[seed], scale)
        usual = attempt(partial(run, seed, values, None))
        return usual is not None and _decides(run, seed, values, usual, number, factor, _moves)

    for seed in drawn:
        # Scores grow with the square of the inputs: the root keeps a step of the scale within one
        # factor of the score.
        low = 1.0
        while low < budgets.LARGE:
            high = low * math.sqrt(factor)
            if decides(seed, high):
                low, high = _edge(partial(decides, seed), low, high)
                return seed, [_scaled(leaves, drawn[seed], scale) for scale in (high, low)]
            low = high
    return None


def _edge(decides: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Two scales, one step apart, between which `decides` becomes true (bisection in the logarithm)."""
    while high > low * budgets.REACH_STEP:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if decides(middle) else (middle, high)
    return low, high


def _scaled(leaves: Sequence[Leaf], values: Sequence[Array], scale: float) -> list[Array]:
    return [single(value * scale) if is_signal(leaf.value) else value for leaf, value in zip(leaves, values, strict=True)]


def _decides(
    run: Run, seed: int, values: Sequence[Array], usual: Result, number: Number, factor: float, test: Callable[[Result, Result], bool]
) -> bool:
    other = attempt(partial(run, seed, values, Numbers(number, factor)))
    return other is None or test(usual, other)


def _differs(usual: Result, other: Result) -> bool:
    """Whether an output changes by more than every check notices."""
    keys = [key for key in usual.arrays if key.startswith(("out/", "state/"))]
    return any(
        key not in other.arrays
        or other.arrays[key].shape != usual.arrays[key].shape
        or rms(other.arrays[key] - usual.arrays[key]) > tolerances.NOISE_FACTOR * tolerances.FLOOR_FP64 * rms(usual.arrays[key])
        for key in keys
    )


def _moves(usual: Result, other: Result) -> bool:
    return tipped(usual, [other])
