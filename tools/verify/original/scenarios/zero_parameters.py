"""Gradients where the parameters of one module are zero. Used inside the sandbox, on the original's side.

Layers that start at zero are usual, and what follows one is at its kink for every input: `relu` has the gradient 0 there, and `maximum` one half.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain

import numpy as np

from migrate_agent.tools.harness.common import budgets, tensor_files
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt, finite_share
from migrate_agent.tools.verify.original.scenarios.writer import ZEROED, ScenarioWriter


def zero_parameters(writer: ScenarioWriter) -> None:
    """Add gradients in evaluation mode with the parameters of one module after the other at zero, and of several, in small units, where outputs are finite."""
    values, state = writer.values(0), writer.states[0]
    if sum(value.size for value in (*state.values(), *values)) > budgets.FURTHER_ELEMENTS:
        return
    for number, names in enumerate(_groups([name for name, value in writer.original.parameters.items() if value.requires_grad])):
        seed = ZEROED - number
        zeroed = _zeroed(state, names)
        result = attempt(lambda zeroed=zeroed: writer.original.run(zeroed, values, "eval"))  # type: ignore[misc]
        if result is None or finite_share(result) < 1:
            continue
        writer.states[seed] = zeroed
        tensor_files.save(writer.folder / f"given/states/{writer.state_name(seed)}.safetensors", zeroed)
        writer.attempt(f"gradient-eval-zeroed{number}", Role.GRADIENT_EDGE, seed, values, gradient=True, runs=1)


def _groups(names: Iterable[str]) -> list[list[str]]:
    """The names by the module that holds them (those of the outermost module each alone), of some modules; of all but the last, and of all but the first."""
    modules: dict[str, list[str]] = {}
    for name in names:
        modules.setdefault(name.rpartition(".")[0] or name, []).append(name)
    groups = list(modules.values())
    some = groups[:: -(-len(groups) // budgets.ZEROED) or 1]
    several = [[*chain(*part)] for part in (groups[:-1], groups[1:]) if len(part) > 1]
    return [*some, *several]


def _zeroed(state: dict[str, np.ndarray], names: Collection[str]) -> dict[str, np.ndarray]:
    """The state with zeros in the place of these, and of what shares their values."""
    shared = {id(state[name]) for name in names if name in state}
    return {name: np.zeros_like(value) if id(value) in shared else value for name, value in state.items()}
