"""A cheap first look at mutants: far off in plain float32 means that the verifier refuses them, so that it need not be asked.

Both sides run in this process on the verifier's own first states and inputs. What raises, gives another tree, shape or integers, puts NaN
elsewhere, or is off by more than `FAR` of a leaf's size is beyond every limit of the verifier (`limits.CAP_FP64`) by far; all else is left
to the verifier itself. It is a first look only where the unmutated rewrite is within `NEAR`.
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

from migrate_agent.evals.mutants import Target
from migrate_agent.tools.verify import codec, sampling
from migrate_agent.tools.verify.compare import pattern_problem, rms
from migrate_agent.tools.verify.jax_unit import is_leaf
from migrate_agent.tools.verify.results import NATIVE, source_file, texts
from migrate_agent.tools.verify.torch_unit import Original, Result
from migrate_agent.tools.weights import load_state_dict

NEAR = 1e-4
FAR = 3e-2
SECONDS = 60
INPUTS = (0, 1)


@dataclass(frozen=True)
class Point:
    """One call: torch's state, the inputs, and what torch gave."""

    original: Original
    texts: Mapping[str, Any]
    state: Mapping[str, Any]
    values: Sequence[Any]
    expected: Result


class ParityFirst:
    """The points of a target. `usable` tells whether its unmutated rewrite is near torch at all of them."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.module = source_file(target.inventory, target.unit).target_module
        self.points: list[Point] = []
        with self._paths(), contextlib.suppress(Exception):
            self.points = list(self._points())
        self.usable = bool(self.points) and self._worst() <= NEAR

    def far(self) -> str:
        """Why what now stands in the target's file is far off; "" where it is not, or where that cannot be told."""
        if not self.usable:
            return ""
        worst = self._worst()
        return f"off by {worst:.1e} in float32" if worst > FAR else ""

    @contextlib.contextmanager
    def _paths(self) -> Iterator[None]:
        roots = [str(self.target.inventory.root), str(self.target.candidate)]
        kept = list(sys.path)
        sys.path[:0] = roots
        try:
            yield
        finally:
            sys.path[:] = kept

    def _points(self) -> Iterator[Point]:
        source = source_file(self.target.inventory, self.target.unit)
        for example, translated in zip(self.target.examples, self.target.translated, strict=True):
            original = Original(source.module, self.target.unit.name, texts(example), example.tensors)
            state = sampling.sample_state(original.state(), frozenset(original.parameters), original.tied(), (0,), 1.0)
            for seed in INPUTS:
                values = sampling.sample_inputs(original.leaves, (seed,), example.domain)
                yield Point(original, texts(translated), state, values, original.run(state, values, "eval", native=True))

    def _worst(self) -> float:
        """The largest error of a leaf at any point, relative to its size; infinite for what cannot be compared."""
        with self._paths(), _alarm(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._forget()
                return max(_error(point, *self._run(point)) for point in self.points)
            except (Exception, SystemExit):
                return float("inf")

    def _forget(self) -> None:
        """Have all modules of the candidate's tree imported anew."""
        root = str(self.target.candidate)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(root):
                del sys.modules[name]
        importlib.invalidate_caches()
        sys.dont_write_bytecode = True
        for cached in Path(root).rglob("__pycache__"):
            for file in cached.iterdir():
                file.unlink()

    def _run(self, point: Point) -> tuple[codec.Tree, list[Any]]:
        found: Any = importlib.import_module(self.module)
        names = {**vars(found), "nnx": nnx, "jnp": jnp, "rngs": nnx.Rngs(0)}
        exec(point.texts["setup"], names)
        for part in self.target.unit.name.split("."):
            found = getattr(found, part)
        model = eval(f"_unit({point.texts['init']}\n)", {**names, "_unit": found})
        load_state_dict(model, {name: _native(value) for name, value in point.state.items()})
        model.eval()
        leaves = [
            jnp.asarray(value).astype(NATIVE.get(leaf.dtype, leaf.dtype))
            for value, leaf in zip(point.values, point.original.leaves, strict=True)
        ]
        renamed = {file.module: file.target_module for file in self.target.inventory.files}
        args, kwargs = codec.decode(point.original.tree, leaves, renamed)
        outputs: list[Any] = []
        return codec.encode(model(*args, **kwargs), outputs, is_leaf), outputs


def _native(value: Any) -> Any:
    return value.astype({"f": np.float32, "c": np.complex64}[value.dtype.kind]) if value.dtype.kind in "fc" else value


def _error(point: Point, tree: codec.Tree, outputs: Sequence[Any]) -> float:
    if codec.skeleton(tree) != codec.skeleton(point.expected.tree):
        return float("inf")
    worst = 0.0
    for index, output in enumerate(outputs):
        got = np.asarray(output[...] if isinstance(output, nnx.Variable) else output)
        wanted = np.asarray(point.expected.arrays[f"out/{index}"])
        if pattern_problem(wanted, got):
            return float("inf")
        if wanted.dtype.kind in "fc":
            finite = np.isfinite(wanted)
            difference = np.abs(np.where(finite, got, 0) - np.where(finite, wanted, 0))
            worst = max(worst, rms(difference) / (rms(wanted) or 1.0))
        elif (wanted != got).any():
            return float("inf")
    return worst


class _TooLong(Exception):
    pass


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """End what takes longer than `SECONDS` by an error."""

    def ring(number: int, frame: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
