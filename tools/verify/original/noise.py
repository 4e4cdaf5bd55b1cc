"""Measures how far rounding noise moves the original's results. Runs inside the sandbox, only where a verdict depends on it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files, tolerances
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.sketches import sketched
from migrate_agent.tools.harness.common.training_steps import torch_curve
from migrate_agent.tools.harness.torch_side.equal_numbers import EqualNumbers
from migrate_agent.tools.harness.torch_side.module import Original, Result, flushing, jittered
from migrate_agent.tools.harness.torch_side.undefined_results import NearestIntegers, UndefinedResults
from migrate_agent.tools.verify.contract.scenario import NATIVE_STAGES, ROUGH_CURVES, Role, Scenario
from migrate_agent.tools.verify.original.outputs import attempt, drowned, moved_elements, noise_of, noise_runs, tipped_infinities, unsteady


@flushing()
def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: `module`, `name`, `examples` (texts by number), `seed`, and `scenarios` (rows of those to run) or `curves`.

    Gives `noise` and `undecided` by the scenario's name, or the changes of a `stage` of native noise where one is asked for, or the `losses` of one
    `curve` (optimiser and kind), whose buffers go to `trained.safetensors`.
    """
    base = budgets.SEED_STRIDE * int(arguments["seed"])
    units: dict[int, Original] = {}

    def unit(number: int) -> Original:
        if number not in units:
            texts, tensors = arguments["examples"][number], inputs.get(f"tensors{number}")
            units[number] = Original.of_job(arguments, texts, tensors, base)
        return units[number]

    if (described := arguments["curves"]) is not None:
        return _curve(unit(0), described, arguments["curve"], inputs["given"], output, base)
    calls = [
        _Call.of(unit(item.example), item, inputs["given"], base, unit(item.prior) if item.prior >= 0 else None)
        for item in map(Scenario.from_json, arguments["scenarios"])
    ]
    stage = arguments["stage"]
    return {call.scenario.name: of_scenario(call) if stage is None else native_noise(call, NATIVE_STAGES[stage]) for call in calls}


class _Call(NamedTuple):
    """The call of a scenario, which is made `again` on other inputs and with noise. `base` is the first seed."""

    unit: Original
    scenario: Scenario
    folder: Path
    base: int
    prior: tuple[Original, Sequence[Array]] | None
    inputs: Mapping[str, Array]

    @classmethod
    def of(cls, unit: Original, scenario: Scenario, folder: Path, base: int, prior: Original | None = None) -> Self:
        """With the inputs from the folder. `prior` is the example that is called before."""
        stored = tensor_files.load(folder / f"inputs/{scenario.name}.safetensors")
        return cls(unit, scenario, folder, base, (prior, _numbered(stored, "prior/")) if prior is not None else None, stored)

    @property
    def values(self) -> list[Array]:
        """The inputs."""
        return _numbered(self.inputs, "in/")

    @property
    def targets(self) -> dict[int, Array] | None:
        """The targets by output, where there are gradients."""
        stored = {int(key[7:]): value for key, value in self.inputs.items() if key.startswith("target/")}
        return stored if self.scenario.gradient else None

    def state(self) -> dict[str, Array]:
        """The state, which is drawn or read now."""
        return tensor_files.load(self.folder / f"states/{self.scenario.state}.safetensors")

    def again(self, state: Mapping[str, Array], values: Sequence[Array], **options: Any) -> Result:
        """Make the call. Raises the errors of the original."""
        scenario = self.scenario
        return self.unit.run(
            state,
            values,
            scenario.mode,
            before=_numbered(self.inputs, "before/") if scenario.before else None,
            prior=self.prior,
            targets=self.targets,
            drawing=scenario.drawing,
            trained=scenario.role == Role.AGAIN_TRAINED,
            conditions=scenario.conditions,
            second=scenario.role == Role.SECOND,
            **options,
        )


def of_scenario(call: _Call) -> dict[str, Any]:
    """RMS and largest change by key (`noise`), and the keys that must not be compared: outputs below their noise, and gradients at a jump."""
    unit, scenario, values, base = call.unit, call.scenario, call.values, call.base
    state = call.state()
    again = partial(call.again, state)
    try:
        result = again(values)
        runs = range(noise_runs(result, scenario.runs))
        if scenario.role == Role.SECOND:
            # torch crashes where a mode changes what it differentiates twice: noise is in state and inputs alone.
            noisy = [_again_twice(unit, scenario, state, values, call.targets, 1 + base + count) for count in runs]
        else:
            noisy = [again(values, noise=1 + base + count) for count in runs]
            noisy += _more_runs(lambda number: again(values, noise=1 + base + number), result, noisy)
    except Exception:
        return {"noise": None, "undecided": []}
    noise, undecided = noise_of(result, noisy), []
    if scenario.role == Role.GRADIENT_EDGE:
        undecided = kinks(unit, partial(unit.run, state, mode=scenario.mode, targets=call.targets), values, result, base)
        watch = EqualNumbers()
        again(values, watch=watch)
        undecided = sorted(key for key in result.arrays if "grad/" in key) if watch.found else undecided
    elif scenario.role == Role.NONFINITE:
        undecided = tipped_infinities(result, noisy)
        results = UndefinedResults()
        again(values, watch=results)
        undecided = sorted({*undecided, *_left_to_the_machine(again, values, result)}) if results.found else undecided
    elif scenario.extreme == input_sampling.Extreme.VANISHING:
        undecided = drowned(result, noise)
    return {"noise": noise, "undecided": undecided}


def _left_to_the_machine(again: Callable[..., Result], values: Sequence[Array], result: Result) -> set[str]:
    """The keys of what is another where floats out of the range of integers become the ones that XLA makes of them; all where that raises."""
    try:
        others = [again(values, watch=NearestIntegers(is_narrow)).arrays for is_narrow in (False, True)]
    except Exception:
        return set(result.arrays)
    return {
        key
        for key, value in result.arrays.items()
        for other in others
        if key not in other or value.shape != other[key].shape or not np.array_equal(value, other[key], equal_nan=value.dtype.kind in "fc")
    }


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


def native_noise(call: _Call, numbers: Sequence[int]) -> dict[str, list[float]] | None:
    """RMS and largest change by key in runs of these numbers with the rounding of the dtypes of a user's run; None where the original does not run."""
    share, started = tolerances.native_noise(call.scenario.narrow), time.monotonic()
    worst: dict[str, list[float]] = {}
    state, values = call.state(), call.values
    try:
        result = call.again(state, values)
        for number in numbers:
            if number >= tolerances.NOISE_RUNS_NATIVE and time.monotonic() - started > budgets.NOISE_SECONDS:
                break
            # One at a time: gradients of many runs at once are more than the memory of a large unit.
            changes = noise_of(result, [call.again(state, values, noise=4 + call.base + number, share=share)])
            worst = {key: [max(pair) for pair in zip(change, worst.get(key, change), strict=True)] for key, change in changes.items()}
    except Exception:
        return None
    return worst


def kinks(unit: Original, run: Any, values: Sequence[Array], result: Result, base: int) -> list[str]:
    """The keys of gradients that jump at these inputs."""
    both = [input_sampling.shifted(unit.leaves, values, share, (base,)) for share in (tolerances.KINK_SHIFT, -tolerances.KINK_SHIFT)]
    return unsteady(result, [attempt(partial(run, moved)) for moved in both])


def _numbered(stored: Mapping[str, Array], prefix: str) -> list[Array]:
    return [stored[key] for index in range(len(stored)) if (key := f"{prefix}{index}") in stored]


def _curve(unit: Original, described: Mapping[str, Any], curve: Sequence[str], folder: Path, output: Path, base: int) -> dict[str, Any]:
    """A float64 curve with noise: of one ulp, of the difference between right programs, or of that between native ones."""
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
    optimiser, kind = curve
    buffers: dict[str, Array] = {}
    rate = described["rates"][optimiser]
    losses = torch_curve(unit, lambda: state, values, goals, optimiser, rate, native=False, buffers=buffers, **kinds[kind])
    tensor_files.save(output / "trained.safetensors", sketched(buffers))
    return {"losses": losses}
