"""Exports the candidate's step as StableHLO, for the search in another process. Used inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import jax
import numpy as np
from jax import export
from jax.extend.core import jaxpr_as_fun

from migrate_agent.tools.harness.common import tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.seeded_arrays import LARGE
from migrate_agent.tools.harness.jax_side.comparisons import compares
from migrate_agent.tools.harness.jax_side.host_arrays import HostArray
from migrate_agent.tools.harness.jax_side.module import is_key
from migrate_agent.tools.harness.jax_side.silent import silent
from migrate_agent.tools.verify.candidate.session import Session


def exported(session: Session, name: str) -> dict[str, Any] | None:
    """Write `search.bin` and `search.safetensors` (the state, but for large arrays that are the original's with axes in some order, whose `sources` the
    layout tells). Returns the layout of the step's arguments and results, or the error.

    The step takes state, inputs and targets, and returns the outputs and the gradients of the loss by
    input.
    """
    scenario = next((item for item in session.requests if item.name == name), None)
    if scenario is None:
        return None
    try:
        return _export(session, scenario)
    except Exception as error:
        return session.fail(error)


def _export(session: Session, scenario: Any) -> dict[str, Any]:
    candidate = session.candidate(scenario.example)
    original_state = session.load(candidate, scenario.state, scenario.example)
    program = session.programs.get(candidate, scenario.mode, session.tree(scenario), gradient=True)
    _, trainable, rest = candidate.parts(scenario.mode)
    leaves, targets = session.leaves(scenario)
    arguments = (trainable, rest, list(leaves), dict(targets))
    traced = program.jitted.trace(*arguments)
    function = jaxpr_as_fun(silent(traced.jaxpr))
    flat = jax.tree.leaves(arguments)
    # Random keys become constants of the program: every draw is replaced, so they decide nothing.
    data_indices = [index for index, value in enumerate(flat) if not is_key(value)]
    _, outputs, _, _, inputs, _ = jax.tree.unflatten(jax.tree.structure(traced.out_info), range(len(jax.tree.leaves(traced.out_info))))
    result_indices = [*outputs, *inputs.values()]

    def step(*flat_arguments: Any) -> list[Any]:
        values = list(flat)
        for index, value in zip(data_indices, flat_arguments, strict=True):
            values[index] = value
        results = function(*values)
        return [results[index] for index in result_indices]

    def serialised() -> bytes:
        return bytes(export.export(jax.jit(step))(*(flat[index] for index in data_indices)).serialize())

    (session.output / "search.bin").write_bytes(session.once(("export", scenario.name, session.form(scenario)), serialised))
    state, origins = [value for value in jax.tree.leaves((trainable, rest)) if not is_key(value)], candidate.origins()
    sources = [origins.get(id(value)) or source(np.asarray(value), original_state) if value.size >= LARGE else None for value in state]
    others = {str(index): np.asarray(value) for index, value in enumerate(state) if sources[index] is None}
    tensor_files.save(session.output / "search.safetensors", others)
    layout = {"compares": compares(traced.jaxpr), "outputs": len(outputs), "sources": sources}
    layout["constants"] = [index for index, leaf in enumerate(leaves) if isinstance(leaf, HostArray)]
    return {**layout, "inputs": [int(index) for index in inputs], "targets": [int(index) for index in sorted(targets)]}


def source(leaf: Array, state: Mapping[str, Array]) -> tuple[str, Sequence[int]] | None:
    """The name of the array that equals a leaf when its axes are in this order; None where there is none."""
    for name, value in state.items():
        for axes in permutations(range(value.ndim)) if sorted(value.shape) == sorted(leaf.shape) and value.dtype == leaf.dtype else ():
            moved = value.transpose(axes)
            # The first row tells most of them apart, without a look at all of a large array.
            if moved.shape == leaf.shape and np.array_equal(moved[:1], leaf[:1]) and np.array_equal(moved, leaf):
                return name, axes
    return None
