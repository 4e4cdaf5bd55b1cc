"""Captures inputs and outputs of every submodule of the candidate in one scenario, or the gradients there. Runs inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.harness.common import tensor_files, trees
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.jax_side.module import is_leaf, module_path
from migrate_agent.tools.harness.jax_side.program import Program, loss
from migrate_agent.tools.verify.candidate.session import Session, stored
from migrate_agent.tools.verify.contract.scenario import Role


def capture(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: a row for each call of a submodule, run eagerly, in the order in which they end. Writes `captured.safetensors`.

    `kind`: as on torch's side.
    """
    kind = arguments["how"]
    session = Session(arguments, inputs, output, exact=kind != "native")
    scenario = session.requests[0]
    candidate = session.candidate(scenario.example)
    candidate.load(session.state(scenario.state, scenario.example, scenario.conditions.width))
    graphdef, trainable, rest = candidate.parts(scenario.mode, scenario.conditions)
    leaves, targets = session.leaves(scenario)
    before = session.before(scenario)
    program = Program(
        graphdef,
        session.tree(scenario),
        arguments["renamed"],
        session.draws,
        gradient=False,
        paired=True,
        drawing=scenario.drawing,
        customs=candidate.customs,
        method=candidate.method,
        changes_objects=candidate.changes_objects,
        prior=session.prior(scenario),
    )
    first = Program(
        graphdef, session.tree(scenario), arguments["renamed"], session.draws, gradient=False, paired=True, method=candidate.method
    )
    recorder = Recorder(kind == "gradients")
    recorder.watch({type(module) for _, module in nnx.iter_modules(candidate.model)})

    # Eagerly: under `jit` the submodules have no values to capture.
    def run(shifts: Mapping[str, Any] | None) -> Any:
        model = nnx.merge(graphdef, trainable, rest, copy=True)
        recorder.begin({id(module): module_path(path) for path, module in nnx.iter_modules(model)}, shifts)
        if before is not None:
            if scenario.role == Role.AGAIN_TRAINED:
                model.train()
            (first if program.prior else program).call(model, before)
            if scenario.role == Role.AGAIN_TRAINED:
                model.eval()
        outputs: list[Any] = []
        trees.encode(program.call(model, leaves)[0], outputs, is_leaf)
        return loss([value.get_value() if isinstance(value, nnx.Variable) else jnp.asarray(value) for value in outputs], targets)

    run(None)
    rows, arrays = recorder.rows, recorder.found
    if kind == "gradients":
        # The gradient by an added zero is the gradient by the array that it was added to.
        gradients = jax.grad(run)(recorder.zeros)
        arrays = {recorder.place[key]: np.conj(np.asarray(value)) for key, value in gradients.items() if key in recorder.place}
    tensor_files.save(output / "captured.safetensors", arrays)
    return rows


class Recorder:
    """Records inputs and outputs of the watched modules' calls; adds `shifts` to them where there are any."""

    def __init__(self, floats: bool) -> None:
        self.floats = floats
        self.zeros: dict[str, Any] = {}
        self.place: dict[str, str] = {}
        self.begin({}, None)

    def begin(self, paths: Mapping[int, str], shifts: Mapping[str, Any] | None) -> None:
        """Start a new recording of these modules (id → path)."""
        self.paths, self.shifts = paths, shifts
        self.rows: list[dict[str, Any]] = []
        self.found: dict[str, Array] = {}
        self.entered = 0

    def watch(self, classes: set[type]) -> None:
        """Wrap `__call__` of these classes, each where it is defined."""
        owners = {owner for cls in classes for owner in cls.__mro__ if "__call__" in vars(owner) and issubclass(owner, nnx.Module)}
        for owner in owners:
            self._wrap(owner)

    def _wrap(self, owner: Any) -> None:
        own = vars(owner)["__call__"]

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            # A `super().__call__()` runs an inherited wrapper too; only the outermost call counts.
            if id(module) not in self.paths or type(module).__call__ is not owner.__call__:
                return own(module, *args, **kwargs)
            entry, self.entered = self.entered, self.entered + 1
            arguments = self._shifted(f"{entry}/in/", (args, kwargs))
            result = self._shifted(f"{entry}/out/", own(module, *arguments[0], **arguments[1]))
            if self.shifts is None:
                self._note(entry, module, arguments, result)
            return result

        owner.__call__ = call

    def _shifted(self, prefix: str, tree: Any) -> Any:
        """The tree with the shifts of this call added to its arrays."""
        if self.shifts is None:
            return tree
        flat, structure = jax.tree.flatten(tree, is_leaf=_is_module)
        floats = [index for index, item in enumerate(flat) if _counts(item, True)]
        for number, index in enumerate(floats):
            key = f"{prefix}{number}"
            flat[index] = flat[index] + self.shifts[key] if key in self.shifts else flat[index]
        return jax.tree.unflatten(structure, flat)

    def _note(self, entry: int, module: Any, arguments: Any, result: Any) -> None:
        ins, outs = _arrays(arguments, self.floats), _arrays(result, self.floats)
        if ins is None or outs is None:
            return
        number = len(self.rows)
        for kind, values in (("in", ins), ("out", outs)):
            self.found |= {f"{number}/{kind}/{index}": stored(value) for index, value in enumerate(values)}
            if self.floats:
                self.zeros |= {f"{entry}/{kind}/{index}": jnp.zeros(value.shape, value.dtype) for index, value in enumerate(values)}
                self.place |= {f"{entry}/{kind}/{index}": f"{number}/{kind}/{index}" for index in range(len(values))}
        row = {"path": self.paths[id(module)], "type": type(module).__name__, "inputs": len(ins), "outputs": len(outs)}
        self.rows.append({**row, "dtypes": [str(value.dtype) for value in outs]})


def _is_module(value: Any) -> bool:
    return isinstance(value, nnx.Module)


def _counts(value: Any, floats: bool) -> bool:
    return (
        is_leaf(value) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key) and (not floats or jnp.issubdtype(value.dtype, jnp.inexact))
    )


def _arrays(value: Any, floats: bool) -> list[Any] | None:
    """The arrays (or the float ones alone) in nested containers, in order; None inside a transformation, where they have no values."""
    leaves = [leaf for leaf in jax.tree.leaves(value, is_leaf=_is_module) if not _is_module(leaf) and is_leaf(leaf)]
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    return [leaf for leaf in leaves if _counts(leaf, floats)]
