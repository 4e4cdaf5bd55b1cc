"""A cheap first judgement of mutants: one that is far off in plain float32 is refused without the verifier.

Both sides run in this process on the verifier's own first states and inputs: outputs in evaluation mode, then outputs, buffers and gradients
in training mode. What raises, gives another tree, shape or integers, puts NaN elsewhere, or is off by more than `FAR` of a leaf's size is
beyond every limit of the verifier (`limits.CAP_FP64`) by far; all else is left to the verifier itself. It is a first look only at the
points where the unmutated rewrite is within `NEAR`.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.evals.mutation.mutants import Target
from migrate_agent.tools.harness.common import input_sampling, trees
from migrate_agent.tools.harness.common.compare_arrays import pattern_problem, rms
from migrate_agent.tools.harness.common.example_text import seed_python
from migrate_agent.tools.harness.jax_side.module import split
from migrate_agent.tools.harness.jax_side.program import Program
from migrate_agent.tools.harness.torch_side.module import Original, Result
from migrate_agent.tools.types import Example
from migrate_agent.tools.verify.contract.jobs import source_file, texts
from migrate_agent.tools.verify.evidence.candidate import NATIVE
from migrate_agent.tools.verify.original.outputs import make_targets
from migrate_agent.tools.weights import load_state_dict, state_dict

NEAR = 1e-4
FAR = 3e-2
SMALL = 1e-2
"""Gradients below this share of the largest are compared on its scale: ones that vanish by mathematics are rounding noise."""
_NO_DRAWS: Any = None
"""In place of paired draws: no point draws."""
SECONDS = 60
INPUTS = (0, 1)


@dataclass(frozen=True)
class Point:
    """One call: torch's state, the inputs, the mode, and torch's result; with gradients where there are targets."""

    original: Original
    texts: Mapping[str, Any]
    state: Mapping[str, Any]
    values: Sequence[Any]
    mode: str
    targets: Mapping[int, Any]
    expected: Result


class ParityFirst:
    """The points of a target at which its unmutated rewrite is near torch."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.module = source_file(target.inventory, target.unit).target_module
        self.calls: list[Point] = []
        with self.paths(), contextlib.suppress(Exception):
            self.calls += self._points()
        self.points = [point for point in self.calls if self._worst([point]) <= NEAR]

    def far(self) -> str:
        """Why the present text of the target's file is far off; "" where it is not, or where no point can judge it."""
        worst = self._worst(self.points)
        return f"off by {worst:.1e} in float32" if worst > FAR else ""

    @contextlib.contextmanager
    def paths(self) -> Iterator[None]:
        """A context in which both trees can be imported."""
        roots = [str(self.target.inventory.root), str(self.target.candidate)]
        before = list(sys.path)
        sys.path[:0] = roots
        try:
            yield
        finally:
            sys.path[:] = before

    def _points(self) -> Iterator[Point]:
        source = source_file(self.target.inventory, self.target.unit)
        for example, translated in zip(self.target.examples, self.target.translated, strict=True):
            original = Original(source.module, self.target.unit.name, texts(example), example.tensors)
            state = input_sampling.sample_state(original.state(), frozenset(original.parameters), original.tied(), (0,), 1.0)
            for seed in INPUTS:
                values = input_sampling.sample_inputs(original.leaves, (seed,), example.domain)
                yield Point(original, texts(translated), state, values, "eval", {}, original.run(state, values, "eval", native=True))
            yield from _with_gradients(original, texts(translated), state, example)

    def _worst(self, points: Sequence[Point]) -> float:
        """The largest relative error of a leaf at any point; infinite where leaves cannot be compared, or the candidate raises."""
        with self.paths(), alarm(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.forget()
                return max((_error(point, *self._run(point)) for point in points), default=0.0)
            except (Exception, SystemExit):
                return float("inf")

    def forget(self) -> None:
        """Have all modules of the candidate's tree imported anew."""
        root = str(self.target.candidate)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(root):
                del sys.modules[name]
        importlib.invalidate_caches()
        # Mutants have the same size and second of change: Python would take a stale cache for the
        # new text.
        sys.dont_write_bytecode = True
        for cached in Path(root).rglob("__pycache__"):
            for file in cached.iterdir():
                file.unlink()

    def build(self, point: Point, rngs: nnx.Rngs) -> Any:
        """The candidate's module, newly constructed. Raises its errors."""
        value: Any = importlib.import_module(self.module)
        names = {**vars(value), "nnx": nnx, "jnp": jnp, "rngs": rngs}
        seed_python()
        exec(point.texts["setup"], names)
        for part in self.target.unit.name.split("."):
            value = getattr(value, part)
        seed_python()
        return eval(f"_unit({point.texts['init']}\n)", {**names, "_unit": value})

    def program(self, point: Point, model: Any, *, gradient: bool) -> Program:
        """The module's step in its present mode."""
        renamed = {file.module: file.target_module for file in self.target.inventory.files}
        return Program(split(model)[0], point.original.tree, renamed, _NO_DRAWS, gradient=gradient, paired=False)

    def leaves(self, point: Point, values: Sequence[Any]) -> list[Any]:
        """Inputs in the dtypes that jax has by default."""
        return [
            jnp.asarray(value).astype(NATIVE.get(leaf.dtype, leaf.dtype)) for value, leaf in zip(values, point.original.leaves, strict=True)
        ]

    def _run(self, point: Point) -> tuple[trees.Tree, Mapping[str, Any]]:
        model = self.build(point, nnx.Rngs(0))
        load_state_dict(model, {name: _native(value) for name, value in point.state.items()})
        model.train() if point.mode == "train" else model.eval()
        program, (_, trainable, rest) = self.program(point, model, gradient=bool(point.targets)), split(model)
        targets = {str(index): jnp.asarray(target) for index, target in point.targets.items()}
        leaves = self.leaves(point, point.values)
        _, outputs, after, of_parameters, of_inputs, _ = program.candidate_step(trainable, rest, leaves, targets)
        arrays = {f"out/{index}": value for index, value in enumerate(outputs)}
        if point.targets:
            graphdef = program.traced.graphdef
            arrays |= {f"state/{name}": value for name, value in _states(graphdef, trainable, after).items()}
            arrays |= {f"grad/{name}": np.conj(value) for name, value in _states(graphdef, of_parameters, after).items()}
            arrays |= {f"input-grad/{index}": np.conj(value) for index, value in of_inputs.items()}
        return program.traced.tree, arrays


def _native(value: Any) -> Any:
    return value.astype({"f": np.float32, "c": np.complex64}[value.dtype.kind]) if value.dtype.kind in "fc" else value


def _states(graphdef: Any, trainable: Any, rest: Any) -> Mapping[str, Any]:
    return state_dict(nnx.merge(graphdef, trainable, rest, copy=True))


def _with_gradients(original: Original, candidate_texts: Mapping[str, Any], state: Mapping[str, Any], example: Example) -> Iterator[Point]:
    """A point with gradients, in training mode; in evaluation mode where training draws random numbers or is excluded."""
    values = input_sampling.sample_inputs(original.leaves, (INPUTS[0],), example.domain)
    for mode in ("train", "eval") if example.train is not False else ("eval",):
        targets = make_targets(original.run(state, values, mode), 0)
        expected = original.run(state, values, mode, targets=targets, native=True)
        if targets and not expected.draws:
            yield Point(original, candidate_texts, state, values, mode, targets, expected)
            return


def _error(point: Point, tree: trees.Tree, arrays: Mapping[str, Any]) -> float:
    if trees.skeleton(tree) != trees.skeleton(point.expected.tree):
        return float("inf")
    expected = {key: value for key, value in point.expected.arrays.items() if key in arrays or key.startswith("out/")}
    largest = max((rms(value) for key, value in expected.items() if "grad/" in key), default=0.0)
    return max(
        (_leaf_error(value, arrays.get(key), SMALL * largest if "grad/" in key else 0.0) for key, value in expected.items()), default=0.0
    )


def _leaf_error(expected: Any, value: Any, least: float) -> float:
    """The error of a leaf relative to its size; infinite where it cannot be compared."""
    actual = np.asarray(value[...] if isinstance(value, nnx.Variable) else value)
    if value is None or pattern_problem(expected, actual):
        return float("inf")
    if expected.dtype.kind not in "fc":
        return float("inf") if (expected != actual).any() else 0.0
    finite = np.isfinite(expected)
    difference = np.abs(np.where(finite, actual, 0) - np.where(finite, expected, 0))
    return rms(difference) / (max(rms(expected), least) or 1.0)


class _TooLong(Exception):
    pass


@contextlib.contextmanager
def alarm() -> Iterator[None]:
    """A context that raises after `SECONDS`: a mutant may loop for ever."""

    def ring(number: int, frame: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
