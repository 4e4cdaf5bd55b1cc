"""Measures how far rounding noise moves the original's results. Runs inside the sandbox, only where a verdict depends on it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files, tolerances
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.sketches import sketched
from migrate_agent.tools.harness.common.training_steps import OPTIMISERS, torch_curve
from migrate_agent.tools.harness.torch_side.module import Original, Result, flushing, jittered
from migrate_agent.tools.verify.contract.scenario import ROUGH_CURVES, Role, Scenario
from migrate_agent.tools.verify.original.outputs import attempt, drowned, moved_elements, noise_of, noise_runs, tipped_infinities, unsteady


@flushing()
def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: `module`, `name`, `examples` (texts by number), `seed`, and `scenarios` (rows of those to run) or `curves`.

    Gives `noise`, `rough` and `undecided` by the scenario's name, or curves by optimiser and kind; buffers go to `trained.safetensors`.
    """
    base = budgets.SEED_STRIDE * int(arguments["seed"])
    units: dict[int, Original] = {}

    def unit(number: int) -> Original:
        if number not in units:
            texts, tensors = arguments["examples"][number], inputs.get(f"tensors{number}")
            units[number] = Original.of_job(arguments, texts, tensors, base)
        return units[number]

    if (curves := arguments["curves"]) is not None:
        return _curves(unit(0), curves, inputs["given"], output, base)
    return {
        item.name: of_scenario(unit(item.example), item, inputs["given"], base, unit(item.prior) if item.prior >= 0 else None)
        for item in map(Scenario.from_json, arguments["scenarios"])
    }


def of_scenario(unit: Original, scenario: Scenario, folder: Path, base: int, prior: Original | None = None) -> dict[str, Any]:
    """RMS and largest change by key (`noise`; `rough`: by the rounding of a user's dtypes, where those are compared), and the keys that must
    not be compared: outputs below their noise, and gradients at a jump. `prior` is the example that is called before."""
    state = tensor_files.load(folder / f"states/{scenario.state}.safetensors")
    stored = tensor_files.load(folder / f"inputs/{scenario.name}.safetensors")
    values, before = _numbered(stored, "in/"), _numbered(stored, "before/")
    targets = {int(key[7:]): value for key, value in stored.items() if key.startswith("target/")} if scenario.gradient else None
    first = before if scenario.before else None
    earlier = (prior, _numbered(stored, "prior/")) if prior is not None else None
    again = partial(unit.run, state, mode=scenario.mode, before=first, prior=earlier, targets=targets, drawing=scenario.drawing)
    again = partial(again, trained=scenario.role == Role.AGAIN_TRAINED, conditions=scenario.conditions, second=scenario.role == Role.SECOND)
    try:
        result = again(values)
        runs = range(noise_runs(result, scenario.runs))
        if scenario.role == Role.SECOND:
            # torch crashes where a mode changes what it differentiates twice: noise is in state and inputs alone.
            noisy = [_again_twice(unit, scenario, state, values, targets, 1 + base + count) for count in runs]
        else:
            noisy = [again(values, noise=1 + base + count) for count in runs]
            noisy += _more_runs(lambda number: again(values, noise=1 + base + number), result, noisy)
        rough = _rough(again, values, result, scenario, base)
    except Exception:
        return {"noise": None, "rough": None, "undecided": []}
    noise, undecided = noise_of(result, noisy), []
    if scenario.role == Role.GRADIENT_EDGE:
        undecided = kinks(unit, partial(unit.run, state, mode=scenario.mode, targets=targets), values, result, base)
    elif scenario.role == Role.NONFINITE:
        undecided = tipped_infinities(result, noisy)
    elif scenario.extreme == input_sampling.Extreme.VANISHING:
        undecided = drowned(result, noise)
    return {"noise": noise, "rough": rough, "undecided": undecided}


def _more_runs(again: Callable[[int], Result], result: Result, noisy: Sequence[Result]) -> list[Result]:
    """Further runs where few elements carry the noise: what it comes to there is chance, as it is in a leaf of few elements."""
    most, started = math.ceil(budgets.NOISE_FEW / max(moved_elements(result, noisy), 1.0)), time.monotonic()
    more: list[Result] = []
    while len(noisy) + len(more) < most and time.monotonic() - started < budgets.NOISE_SECONDS:
        more.append(again(len(noisy) + len(more)))
    return more


def _again_twice(unit: Original, scenario: Scenario, state: Any, values: Sequence[Array], targets: Any, seed: int) -> Result:
    moved = jittered(state, seed, tolerances.EPS64), list(jittered(dict(enumerate(values)), seed, tolerances.EPS64).values())
    return unit.run(*moved, scenario.mode, targets=targets, drawing=scenario.drawing, second=True)


def _rough(again: Callable[..., Result], values: Sequence[Array], result: Result, scenario: Scenario, base: int) -> dict[str, list[float]]:
    """RMS and largest change by key in runs with the rounding of the dtypes of a user's run, where that is compared. Raises the errors of the original.

    Scaled up from one ulp of float64, noise misses the kinks (`relu` at zero, the largest of a window) that only rounding of this size crosses.
    """
    if scenario.native is None or not (scenario.gradient or scenario.role == Role.EDGE):
        return {}
    share, started = tolerances.native_noise(scenario.narrow), time.monotonic()
    runs = tolerances.NOISE_RUNS_GRADIENT if scenario.gradient else tolerances.NOISE_RUNS_NATIVE
    worst: dict[str, list[float]] = {}
    for count in range(runs):
        if count >= tolerances.NOISE_RUNS_NATIVE and time.monotonic() - started > budgets.NOISE_SECONDS:
            break
        # One at a time: gradients of many runs at once are more than the memory of a large unit.
        changes = noise_of(result, [again(values, noise=4 + base + count, share=share)])
        worst = {key: [max(pair) for pair in zip(change, worst.get(key, change), strict=True)] for key, change in changes.items()}
    return worst


def kinks(unit: Original, run: Any, values: Sequence[Array], result: Result, base: int) -> list[str]:
    """The keys of gradients that jump at these inputs."""
    both = [input_sampling.shifted(unit.leaves, values, share, (base,)) for share in (tolerances.KINK_SHIFT, -tolerances.KINK_SHIFT)]
    return unsteady(result, [attempt(partial(run, moved)) for moved in both])


def _numbered(stored: Mapping[str, Array], prefix: str) -> list[Array]:
    return [stored[key] for index in range(len(stored)) if (key := f"{prefix}{index}") in stored]


def _curves(unit: Original, described: Mapping[str, Any], folder: Path, output: Path, base: int) -> dict[str, Any]:
    """Float64 curves with noise of one ulp, of the difference between right programs, and of that between native ones."""
    state = tensor_files.load(folder / f"states/{described['state']}.safetensors")
    stored = [tensor_files.load(folder / f"inputs/{name}.safetensors") for name in described["batches"]]
    values = [_numbered(item, "in/") for item in stored]
    goals = [{int(key[7:]): value for key, value in item.items() if key.startswith("target/")} for item in stored]
    kinds: dict[str, dict[str, Any]] = {
        "noisy": {"noise": 1 + base},
        "rough": {"noise": 2 + base, "share": tolerances.NOISE_FACTOR * tolerances.EPS64},
    }
    share = tolerances.native_noise(described["narrow"])
    kinds |= {kind: {"noise": 3 + base + count, "share": share} for count, kind in enumerate(ROUGH_CURVES)}
    curves: dict[str, Any] = {}
    buffers: dict[str, dict[str, Array]] = {kind: {} for kind in kinds}
    for optimiser in (name for name in OPTIMISERS if name in described):  # whose buffers are kept, both sides' of the last
        run = partial(torch_curve, unit, lambda: state, values, goals, optimiser, described["rates"][optimiser], native=False)
        curves[optimiser] = {kind: run(**options, buffers=buffers[kind]) for kind, options in kinds.items()}
    tensor_files.save(output / "trained.safetensors", sketched(buffers["noisy"]))
    return curves
