"""Searches the worst input by gradient ascent on the distance between the two programs. Runs inside the sandbox, on the original's side.

torch's autograd differentiates the original; the candidate's exported step has its gradients already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export

from migrate_agent.tools.harness.common import budgets, input_sampling, tensor_files, tolerances
from migrate_agent.tools.harness.common.compare_arrays import rms
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.xla_flags import EMITTERS, set_flag, usual
from migrate_agent.tools.harness.torch_side.module import Original, Result, flushing
from migrate_agent.tools.verify.contract.scenario import Request
from migrate_agent.tools.verify.original.outputs import attempt, noise_of, noise_runs

Values = list[Array]


@dataclass
class Point:
    """An input, both programs' outputs, their relative error, and the direction in which their distance grows."""

    values: Values
    theirs: Result
    ours: dict[str, Array]
    error: float
    uphill: dict[int, Array]


class Step:
    """The candidate's exported step, with its state, of which large arrays come from the original's (`original_state`)."""

    def __init__(self, folder: Path, layout: Mapping[str, Any], original_state: Mapping[str, Array]) -> None:
        set_flag(EMITTERS, "false")
        settings: Any = jax.config
        settings.update("jax_enable_x64", True)
        settings.update("jax_disable_most_optimizations", True)
        self.layout = layout
        others = tensor_files.load(folder / "search.safetensors")
        self.state = [
            others[str(index)] if row is None else original_state[row[0]].transpose(row[1]) for index, row in enumerate(layout["sources"])
        ]
        self.call = _program((folder / "search.bin").read_bytes(), bool(layout["compares"]))

    def __call__(self, values: Values, targets: Mapping[int, Array]) -> tuple[dict[str, Array], dict[int, Array]]:
        """Outputs by key, and the gradients of the loss against these targets by index of the input."""
        goals = [np.asarray(targets[index]) for index in self.layout["targets"]]
        moving = [value for index, value in enumerate(values) if index not in self.layout["constants"]]
        results = [np.asarray(item) for item in self.call(*self.state, *moving, *goals)]
        count = int(self.layout["outputs"])
        outputs = {f"out/{index}": value for index, value in enumerate(results[:count])}
        return outputs, {index: np.conj(value) for index, value in zip(self.layout["inputs"], results[count:], strict=True)}


@cache
def _program(exported: bytes, compares: bool) -> Any:
    return jax.jit(export.deserialize(bytearray(exported)).call, compiler_options=usual() if compares else None)


@flushing()
def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. Writes `found.safetensors` with the inputs at which the two programs differ by more than the floor."""
    seed = budgets.SEED_STRIDE * int(arguments["seed"])
    original = Original.of_job(arguments, arguments["example"], inputs.get("tensors"), seed)
    scenario, folder = Request.from_json(arguments["scenario"]), inputs["given"]
    state = tensor_files.load(folder / f"states/{scenario.state}.safetensors")
    stored = tensor_files.load(folder / f"inputs/{scenario.name}.safetensors")
    recorded = [stored[f"in/{index}"] for index in range(len(original.leaves))]
    search = Search(
        original, state, scenario.mode, Step(inputs["step"], arguments["layout"], state), recorded, arguments["example"]["domain"]
    )
    points = search.ascend(np.random.default_rng([seed, 7]))
    beyond = [point for point in points if point.error > tolerances.FLOOR_FP64]
    arrays: dict[str, Array] = {}
    noises = []
    for index, point in enumerate(beyond):
        runs = noise_runs(point.theirs, budgets.NOISE_RUNS)
        noisy = [attempt(partial(search.original_run, point.values, noise=1 + seed + count)) for count in range(runs)]
        moved = [result for result in noisy if result is not None]
        noises.append({"noise": noise_of(point.theirs, moved), "undecided": tied(point.theirs, point.ours, moved)})
        arrays |= {f"{index}/in/{i}": value for i, value in enumerate(point.values)}
        arrays |= {f"{index}/{key}": value for key, value in point.theirs.arrays.items() if key.startswith("out/")}
        arrays |= {f"{index}/got/{key}": value for key, value in point.ours.items()}
    tensor_files.save(output / "found.safetensors", arrays)
    return {"points": noises, "error": max((point.error for point in points), default=0.0), "tried": search.tried}


class Search:
    """A few ascents from different starts, each of a few sign-gradient steps of decreasing length."""

    def __init__(self, original: Original, state: Mapping[str, Array], mode: str, step: Step, recorded: Values, domain: Any) -> None:
        self.original, self.state, self.mode, self.step, self.recorded = original, state, mode, step, recorded
        constants = step.layout["constants"]
        self.bounds = [None if index in constants else bounds(value, domain) for index, value in enumerate(recorded)]
        self.tried = 0

    def ascend(self, generator: np.random.Generator) -> list[Point]:
        """The worst point of each ascent."""
        size = sum(value.size for value in (*self.state.values(), *self.recorded))
        starts = self.starts(generator)[: budgets.SEARCH_STARTS if size <= budgets.SEARCH_SMALL else 1]
        return [worst for values in starts if (worst := self.climb(values)) is not None]

    def starts(self, generator: np.random.Generator) -> list[Values]:
        """The starts: a random point of the domain, the recorded inputs, and a corner of the domain."""
        anywhere = [self.moved(index, lambda low, high, shape: generator.uniform(low, high, shape)) for index in range(len(self.recorded))]
        corner = [self.moved(index, lambda low, high, shape: generator.choice([low, high], shape)) for index in range(len(self.recorded))]
        return [anywhere, self.recorded, corner]

    def moved(self, index: int, draw: Callable[[float, float, tuple[int, ...]], Array]) -> Array:
        """An input drawn within its bounds; as recorded where it must not move."""
        limit, value = self.bounds[index], self.recorded[index]
        return value if limit is None else input_sampling.single(np.asarray(draw(*limit, value.shape), dtype=value.dtype))

    def climb(self, values: Values) -> Point | None:
        """The worst point of one ascent; None where the original does not run at its start."""
        worst: Point | None = None
        share = budgets.SEARCH_STEP
        for _ in range(budgets.SEARCH_STEPS + 1):
            point = self.look(values)
            if point is None:
                break
            worst = point if worst is None or point.error > worst.error else worst
            values = [self.stepped(value, index, point.uphill.get(index), share) for index, value in enumerate(values)]
            share *= budgets.SEARCH_DECAY
        return worst

    def stepped(self, value: Array, index: int, uphill: Array | None, share: float) -> Array:
        """The value one step further, within the bounds."""
        limit = self.bounds[index]
        if limit is None or uphill is None:
            return value
        low, high = limit
        return input_sampling.single(
            # The sign alone: gradients of different elements differ by orders of magnitude.
            np.clip(value + share * (high - low) * np.sign(np.nan_to_num(uphill.real)), low, high).astype(value.dtype)
        )

    def original_run(self, values: Values, **options: Any) -> Result:
        """The original's result for these inputs."""
        return self.original.run(self.state, values, self.mode, **options)

    def look(self, values: Values) -> Point | None:
        """Run both programs on an input, and find the direction in which their distance (where they agree, their outputs) grows.

        None where the original raises.
        """
        theirs = attempt(lambda: self.original_run(values))
        if theirs is None:
            return None
        self.tried += 1
        targets = {index: np.asarray(theirs.arrays[f"out/{index}"]) for index in self.step.layout["targets"]}
        ours, ahead = self.step(values, targets)
        error = max((relative(theirs.arrays[key], ours.get(key)) for key in theirs.arrays if key.startswith("out/")), default=0.0)
        # The gradient of a distance of rounding noise has no meaning; large outputs are where
        # programs part.
        agree = error < tolerances.SEARCH_AGREE
        pulled = {index: np.zeros_like(value) if agree else ours[f"out/{index}"] for index, value in targets.items()}
        back = attempt(lambda: self.original_run(values, targets=pulled))
        gradients = {} if back is None else back.arrays
        uphill = {index: gradients.get(f"input-grad/{index}", np.zeros(())) + (0 if agree else value) for index, value in ahead.items()}
        return Point(values, theirs, ours, error, uphill)


def tied(theirs: Result, ours: Mapping[str, Array], noisy: Sequence[Result]) -> list[str]:
    """Keys of the integer outputs of which rounding decides as much as the two programs differ by: places among equal values, such as those of
    neighbours in a corner of the domain."""
    whole = {key: value for key, value in theirs.arrays.items() if key.startswith("out/") and value.dtype.kind in "iub" and key in ours}
    moves = {key: max((_share(value, other.arrays.get(key)) for other in noisy), default=0.0) for key, value in whole.items()}
    shares = {key: _share(value, ours[key]) for key, value in whole.items()}
    return sorted(key for key, share in shares.items() if share <= min(tolerances.FP32_FACTOR * moves[key], 1.0))


def _share(one: Array, other: Array | None) -> float:
    """The share of elements that differ; infinity where the other one has another shape."""
    if other is None or one.shape != other.shape:
        return float("inf")
    return float(np.mean(one != other)) if one.size else 0.0


def relative(theirs: Array, ours: Array | None) -> float:
    """The RMS error relative to the original's RMS; infinite where shapes or the positions of NaN and infinities differ."""
    if ours is None or theirs.shape != ours.shape:
        return float("inf")
    if theirs.dtype.kind not in "fc":
        return 0.0 if (theirs == ours).all() else float("inf")
    finite = np.isfinite(theirs)
    if (finite != np.isfinite(ours)).any():
        return float("inf")
    return rms(np.abs(np.where(finite, ours, 0) - np.where(finite, theirs, 0))) / (rms(theirs) or 1.0)


def bounds(value: Array, domain: Sequence[float] | None) -> tuple[float, float] | None:
    """The bounds of a float input: the declared domain, else a range around the recorded values; None where it must not move."""
    if value.dtype.kind != "f" or not value.size or input_sampling.is_mask(value):
        return None
    if domain is not None:
        return float(domain[0]), float(domain[1])
    low, high = float(value.min()), float(value.max())
    # Values within [0, 1] may be probabilities, for which no value outside has a meaning.
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    reach = budgets.SEARCH_REACH * (float(np.std(value)) or float(np.abs(value).mean()) or 1.0)
    middle = float(value.mean())
    return (0.0 if low >= 0 else middle - reach), middle + reach
