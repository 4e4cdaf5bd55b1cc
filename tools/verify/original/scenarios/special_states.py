"""Parameters with which the original gives NaN or infinities. Used inside the sandbox, on the original's side.

`logdet` of a matrix whose determinant is negative is NaN in torch, and so is the root of a negative weight: a formula that is right elsewhere may give
a number there, and a loss that should have stopped goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import numpy as np

from migrate_agent.tools.harness.common import budgets, tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.torch_side.module import Original, Result
from migrate_agent.tools.verify.contract.scenario import Role
from migrate_agent.tools.verify.original.outputs import attempt
from migrate_agent.tools.verify.original.scenarios import source_literals
from migrate_agent.tools.verify.original.scenarios.writer import SPECIAL, ScenarioWriter

OF_MATRICES = frozenset({"det", "logdet", "slogdet", "inverse", "inv", "pinverse", "pinv", "cholesky", "solve", "matrix_power"})
"""Names in code that asks whether a matrix is singular."""
State = Mapping[str, Array]


def special_states(writer: ScenarioWriter) -> None:
    """Add calls of a small unit with parameters of the other sign, all or in one row of each matrix, and with a row of zeros where the code looks at
    determinants, as far as the original is finite elsewhere with them. They run the program of the usual call."""
    values, state = writer.values(0), writer.states[0]
    if sum(value.size for value in (*state.values(), *values)) > budgets.FURTHER_ELEMENTS:
        return
    usual = _not_finite(writer.once(state, values, "eval"))

    def finite_elsewhere(special: State) -> bool:
        result = attempt(lambda: writer.original.run(special, values, "eval"))
        return result is not None and _not_finite(result) != usual

    chosen = ((label, special) for label, special in _states(writer.original, state) if finite_elsewhere(special))
    for number, (label, special) in enumerate(islice(chosen, budgets.SPECIAL_STATES)):
        writer.states[SPECIAL - number] = dict(special)
        tensor_files.save(writer.folder / f"given/states/{writer.state_name(SPECIAL - number)}.safetensors", dict(special))
        writer.attempt(f"edge-parameters-{label}", Role.EDGE, SPECIAL - number, values, runs=1)


def _not_finite(result: Result) -> list[list[str]]:
    """Which elements of the outputs are NaN or infinite."""
    floats = (value for key, value in result.arrays.items() if key.startswith("out/") and value.dtype.kind in "fc")
    return [[f"{place} {value.flat[place]}" for place in np.flatnonzero(~np.isfinite(value))] for value in floats]


def _states(unit: Original, state: State) -> Iterator[tuple[str, State]]:
    """What is special, and the state with it."""
    yield "mirrored", _changed(unit, state, _with_first_row(-1.0))
    if source_literals.uses(unit.native, OF_MATRICES):
        yield "singular", _changed(unit, state, _with_first_row(0.0))
    yield "negated", _changed(unit, state, np.negative)


def _changed(unit: Original, state: State, change: Callable[[Array], Array]) -> State:
    """The state with its floating parameters changed; names that share memory share what became of it."""
    other = {id(value): change(value) for name, value in state.items() if name in unit.parameters and value.dtype.kind == "f"}
    return {name: other.get(id(value), value) for name, value in state.items()}


def _with_first_row(factor: float) -> Callable[[Array], Array]:
    def change(value: Array) -> Array:
        other = value.copy()
        if value.ndim > 1:
            other[:1] *= factor
        return other

    return change
