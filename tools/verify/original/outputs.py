"""Derives from the original's results: targets of a loss, the effect of rounding noise, initial values. Used inside the sandbox."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from migrate_agent.tools.harness.common import budgets, input_sampling, methods, tensor_files, tolerances
from migrate_agent.tools.harness.common.class_values import class_values
from migrate_agent.tools.harness.common.compare_arrays import equal, rms
from migrate_agent.tools.harness.common.example_text import init_arguments
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.signatures import describe, describe_methods
from migrate_agent.tools.harness.torch_side.module import Original, Result, State, seed_draws, tensors_of, wide_flat
from migrate_agent.tools.harness.torch_side.own_seeds import varied_seeds
from migrate_agent.tools.harness.torch_side.precision import Vanishing

Given = TypeVar("Given")

OVERFLOWING = 1e100
"""Beyond it the square of a number is near the largest of double precision."""


def attempt(action: Callable[[], Given]) -> Given | None:
    """The result, or None where the original raises: it does not support the variation then."""
    try:
        return action()
    except Exception:
        return None


def finite_share(result: Result, infinite: bool = False) -> float:
    """Share of finite elements among all float outputs; with `infinite`, of all that are numbers."""
    floats = [value for key, value in result.arrays.items() if key.startswith("out/") and value.dtype.kind in "fc"]
    count = sum(value.size for value in floats)
    return sum(int((~np.isnan(value) if infinite else np.isfinite(value)).sum()) for value in floats) / count if count else 1.0


def overflows_soon(result: Result) -> bool:
    """Whether an output is so large that its square, or a product of a few of them as in gradients, may overflow in double precision."""
    floats = [value for key, value in result.arrays.items() if key.startswith("out/") and value.dtype.kind in "fc"]
    return any(float(np.abs(value[np.isfinite(value)]).max(initial=0.0)) > OVERFLOWING for value in floats)


def make_targets(result: Result, seed: int) -> dict[int, Array]:
    """Targets of the loss by index of the float output: standard normal numbers of the output's shape, dtype and RMS."""
    targets = {}
    for index in range(len(result.dtypes)):
        value = result.arrays[f"out/{index}"]
        if value.dtype.kind not in "fc" or not value.size:
            continue
        finite = np.abs(value[np.isfinite(value)])
        scale = (float(np.sqrt(np.mean(finite**2))) if finite.size else 1.0) or 1.0
        # Random targets reach every output: a loss against zeros would not see a wrong sign.
        targets[index] = input_sampling.normal(value, (seed, 3, index), 0.0, scale)
    return targets


def noise_runs(result: Result, runs: int) -> int:
    """The number of perturbed runs that measures the noise of every leaf: more than `runs` where a leaf has few elements."""
    sizes = [value.size for value in result.arrays.values() if value.dtype.kind in "fc" and value.size]
    return max(runs, math.ceil(budgets.NOISE_FEW / min(sizes))) if sizes else runs


def moved_elements(result: Result, noisy: Sequence[Result]) -> float:
    """How many elements carry the noise of these runs, of the output or gradient and run where that is least (infinity where noise moves nothing): what a
    few of many elements come to hangs on chance."""
    compared = {
        key: value for key, value in result.arrays.items() if (key.startswith("out/") or "grad/" in key) and value.dtype.kind in "fc"
    }
    changes = [_changes(value, other.arrays.get(key)) for key, value in compared.items() for other in noisy]
    # Scaled first: squares of what noise makes of an exponential may overflow.
    powers = [(change / change.max()) ** 2 for change in changes if change.max(initial=0.0) > 0]
    return min((float(power.sum() ** 2 / (power**2).sum()) for power in powers if (power**2).any()), default=math.inf)


def _changes(value: Array, other: Array | None) -> Array:
    """The finite ones of the changes' sizes [n]; none where the other run gave no such array."""
    if other is None or other.shape != value.shape:
        return np.zeros(0)
    with np.errstate(invalid="ignore", over="ignore"):
        change = np.abs(other - value)
    finite: Array = change[np.isfinite(change)]
    return finite


def noise_of(result: Result, noisy: Sequence[Result]) -> dict[str, list[float]]:
    """Key → [RMS, largest] of the absolute changes by rounding noise, the worst of the noisy runs."""
    noise = {}
    for key, value in result.arrays.items():
        if value.dtype.kind not in "fc" or not value.size:
            continue
        finite = [_changes(value, other.arrays.get(key)) for other in noisy]
        noise[key] = [
            max((rms(change) for change in finite if change.size), default=0.0),
            max((float(change.max()) for change in finite if change.size), default=0.0),
        ]
    return noise


def tipped(result: Result, noisy: Sequence[Result]) -> bool:
    """Whether rounding noise changes an output by more than a right program may, or an integer one at all: it tips a comparison over."""

    def moves(value: Array, other: Array) -> bool:
        if value.shape != other.shape or value.dtype.kind not in "fc":
            return not np.array_equal(value, other)
        unchanged = (value == other) | (np.isnan(value) & np.isnan(other))
        with np.errstate(invalid="ignore"):
            change = np.where(unchanged, 0.0, np.abs(value - other))
        return not bool((change <= tolerances.CAP_FP64 * (rms(value) + np.abs(np.where(np.isfinite(value), value, 0)))).all())

    outputs = [key for key in result.arrays if key.startswith(("out/", "state/"))]
    return any(key not in other.arrays or moves(result.arrays[key], other.arrays[key]) for other in noisy for key in outputs)


def tipped_infinities(result: Result, noisy: Sequence[Result]) -> list[str]:
    """Keys of outputs in which rounding noise decides what is infinite, and what NaN: a weight is zero or nearly so beside an infinite value."""

    def kinds(value: Array) -> Array:
        return np.where(np.isnan(value), 2, np.isfinite(value))

    outputs = {key: value for key, value in result.arrays.items() if key.startswith("out/") and value.dtype.kind in "fc"}
    return sorted(
        key
        for key, value in outputs.items()
        if any(key not in other.arrays or not np.array_equal(kinds(value), kinds(other.arrays[key])) for other in noisy)
    )


def drowned(result: Result, noise: Mapping[str, Sequence[float]]) -> list[str]:
    """Keys of outputs whose rounding noise is a larger share than the limits can judge."""
    outputs = {key: value for key, value in result.arrays.items() if key.startswith("out/") and key in noise}
    return sorted(key for key, value in outputs.items() if noise[key][0] > tolerances.DROWNED * rms(value))


def unsteady(result: Result, shifted: Sequence[Result | None]) -> list[str]:
    """Keys of gradients that a tiny shift of the inputs changes by much: at a jump the value of a gradient is a convention."""
    sizes = {key: rms(value) for key, value in result.arrays.items() if "grad/" in key}
    least = tolerances.KINK_SCALE * max(sizes.values(), default=0.0)

    def changes(key: str, size: float) -> bool:
        moved = [np.abs(other.arrays[key] - result.arrays[key]).max(initial=0.0) if other is not None else np.inf for other in shifted]
        return not all(change <= tolerances.KINK_CHANGE * max(size, least) for change in moved)

    return sorted(key for key, size in sizes.items() if changes(key, size))


def elements(unit: Original) -> int:
    """Numbers in state and inputs."""
    return sum(value.numel() for value in tensors_of(unit.exact).values()) + sum(leaf.value.size for leaf in unit.leaves)


def one_line(error: BaseException) -> str:
    """`Type: message` without line breaks."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]


def same(one: Result, other: Result) -> bool:
    """Whether two runs gave equal arrays, states included."""
    return one.arrays.keys() == other.arrays.keys() and all(equal(value, other.arrays[key]) for key, value in one.arrays.items())


def initial_values(unit: Original, base: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """The numbers of constructions (`count`; `total` for the parameters `small`), and name → sampled values [constructions, elements]."""
    return _sampled_values(unit, base, unit.fresh, unit.unset(base + 999))


def redraws(unit: Original, result: Result) -> bool:
    """Whether a method draws a new state and gives nothing, as `reset_parameters` does: the two sides may draw in any order and layout then."""
    return not unit.leaves and bool(result.draws) and not result.dtypes and any(key.startswith("state/") for key in result.arrays)


def redrawn_values(unit: Original, state: State, base: int) -> tuple[dict[str, Any], dict[str, Array]]:
    """The same of a module with this state whose method was called, instead of a new one."""

    def redrawn() -> torch.nn.Module:
        module = unit.module(state, "eval", native=True)
        _, args, kwargs, _ = unit.arguments([leaf.value for leaf in unit.leaves], native=True)
        with torch.no_grad():
            methods.bound(module, unit.method)(*args, **kwargs)
        return module  # type: ignore[no-any-return]

    return _sampled_values(unit, base, redrawn, frozenset())


def _sampled_values(
    unit: Original, base: int, make: Callable[[], torch.nn.Module], unset: Container[str]
) -> tuple[dict[str, Any], dict[str, Array]]:
    sizes = [value.numel() for value in tensors_of(unit.native).values()]
    elements, tensors = max(sum(sizes), 1), max(len(sizes), 1)
    least, middle, most = budgets.INITS
    count = min(max(budgets.INIT_ELEMENTS // elements, least), max(budgets.INIT_TENSORS // tensors, middle), most)
    rows: dict[str, list[Array]] = {}

    def construct(seed: int, names: Container[str]) -> None:
        seed_draws(base + 1000 + seed)
        with varied_seeds(seed):
            module = make()
        for name, value in tensors_of(module).items():
            if name in names and name not in unset:
                flat = wide_flat(value)
                rows.setdefault(name, []).append(flat[tensor_files.sample_indices(flat.size, budgets.INIT_SAMPLE)])

    names = tensors_of(unit.native).keys()
    for seed in range(count):
        construct(seed, names)
    # Constants need no more constructions: only random values have a distribution to estimate.
    drawn = {name: values[0].size for name, values in rows.items() if any((value != values[0]).any() for value in values)}
    small = [name for name, size in drawn.items() if size * count < budgets.INIT_SMALL]
    needed = max((-(-budgets.INIT_SMALL // drawn[name]) for name in small), default=0)
    total = max(min(needed, budgets.INIT_TOGETHER // elements, budgets.INIT_SMALL_TENSORS // tensors, most), count)
    for seed in range(count, total):
        construct(seed, small)
    return {"count": count, "total": total, "small": small}, {name: np.stack(values) for name, values in rows.items()}


def exact_initial_values(unit: Original) -> dict[str, Array]:
    """Name → the same elements as constructed in float64: what is constant there tells how far rounding moved it in torch's own construction."""
    flat = {name: wide_flat(value) for name, value in tensors_of(unit.exact).items()}
    return {name: value[tensor_files.sample_indices(value.size, budgets.INIT_SAMPLE)] for name, value in flat.items()}


def large_inputs(unit: Original, state: State) -> list[Array] | None:
    """Large inputs at which the original does not divide by nearly vanishing numbers, and its gradients do not overflow; None where there are none."""
    for factor in budgets.LARGE_STEPS:
        values = input_sampling.edges(unit.leaves, factor * budgets.LARGE)["large"]
        if not divides_by_vanishing(unit, state, values) and _has_gradients(unit, state, values):
            return values
    return None


def divides_by_vanishing(unit: Original, state: State, values: Sequence[Array]) -> bool:
    """Whether the original divides by numbers other than zero whose inverse, times another number, overflows in double precision."""
    attempt(partial(unit.run, state, values, "eval", watch=(watch := Vanishing())))
    return watch.seen


def _has_gradients(unit: Original, state: State, values: Sequence[Array]) -> bool:
    """Whether all gradients of the original are finite: which of them overflow is up to the formula that they are written by."""
    result = attempt(partial(unit.run, state, values, "eval", targets=partial(make_targets, seed=0)))
    gradients = [value for key, value in result.arrays.items() if key.startswith(("grad/", "input-grad/"))] if result is not None else []
    return all(bool(np.isfinite(value).all()) for value in gradients)


def own_modes(module: torch.nn.Module) -> bool:
    """Whether a submodule has a `train` or `eval` of its own, which may do more than change the mode."""
    own = (torch.nn.Module.train, torch.nn.Module.eval)
    return any((type(part).train, type(part).eval) != own for part in module.modules())


def _values(unit: Original) -> dict[str, Any]:
    return class_values(unit.cls, init_arguments(unit.example, unit.namespace), sys.path[0], torch.nn.Module)


def described(unit: Original) -> dict[str, Any]:
    """The facts of an example that the spec stage compares, as JSON."""
    return {
        "tree": unit.tree,
        "signatures": {
            "constructor": describe(unit.cls, "__init__", torch.nn.Module),
            "call": describe(unit.cls, methods.main_method(unit.cls), torch.nn.Module),
            "methods": describe_methods(unit.cls, torch.nn.Module),
        },
        "values": attempt(partial(_values, unit)),
        "state": {name: list(value.shape) for name, value in unit.state().items()},
        "parameters": sorted(unit.parameters),
        "tied": unit.tied(),
        "changes_objects": unit.changes_objects,
        "on_host": unit.on_host is True,
        "resolved": unit.resolved,
        "held": sorted(unit.held),
        "frozen": sorted(name for name, value in unit.parameters.items() if not value.requires_grad),
        "trains": all(part.training for part in unit.native.modules()),
        "state_dtypes": {name: str(value.dtype).removeprefix("torch.") for name, value in tensors_of(unit.native).items()},
    }
