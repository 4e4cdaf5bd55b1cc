"""Scenarios in which random numbers take the other decision than usual. Used inside the sandbox, on the original's side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from migrate_agent.tools.harness.common import budgets
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.common.random_streams import Drawing, Tilt, zeroed
from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.verify.contract.scenario import Role, Scenario
from migrate_agent.tools.verify.original.outputs import attempt, finite_share
from migrate_agent.tools.verify.original.scenarios.writer import ScenarioWriter

TILTS: tuple[Tilt, ...] = ("low", "high")
SPREAD = ("uniform", "integers")
"""Kinds of draws that are tried at both ends of their range."""


def drawn_otherwise(writer: ScenarioWriter, scenario: Scenario, values: Sequence[Array], role: Role = Role.DROPPED) -> None:
    """Add scenarios for both outcomes of random decisions.

    Uniform numbers are drawn at both ends of their range, and on both sides of numbers that they are
    compared with; masks of dropout are zero.
    """
    mode, draws = scenario.mode, scenario.draws
    spread = [draw[0] for draw in draws if draw[0] in SPREAD]
    ends: list[tuple[float, float] | None] = [None] if spread else []
    if "uniform" in spread:
        ends += (pairs := compared_with(writer, mode, values))
        writer.compared = tuple((low + high) / 2 for low, high in pairs)
    for number, pair in enumerate(ends):
        for tilt in TILTS:
            options: dict[str, Any] = {"gradient": scenario.gradient, "drawing": Drawing(tilt, ends=pair)}
            label = f"{scenario.role}-{mode}-draws-{tilt}" + (f"-{number}" if number else "")
            writer.add(label, scenario.role, mode, 0, values, **options)
    for number, dropped in enumerate(zeroed(draws)):
        writer.add(f"dropped-{mode}-{number}", role, mode, 0, values, drawing=Drawing(dropped=dropped), runs=1)


def further_gradients(writer: ScenarioWriter, ran: int) -> None:
    """Add gradients on further inputs, after `ran` ones, for small units: a cut of the gradient may apply in a narrow range alone."""
    usual = next((scenario for scenario in writer.scenarios if scenario.role == Role.GRADIENT), None)
    if usual is None or sum(value.size for value in (*writer.states[0].values(), *writer.values(0))) > budgets.FURTHER_ELEMENTS:
        return
    seeds = sum(seed >= 0 for seed in writer.states)
    mode, whole = usual.mode, finite_share(writer.once(writer.states[0], writer.values(0), "eval"))
    for number in range(ran, ran + budgets.FURTHER):
        seed, values = number % seeds, writer.values(number)
        result = attempt(lambda seed=seed, values=values: writer.once(writer.states[seed], values, "eval"))  # type: ignore[misc]
        if result is not None and finite_share(result) >= whole:
            writer.add(f"gradient-{mode}-further{number}", Role.GRADIENT, mode, seed, values, gradient=True, runs=1)


def compared_with(writer: ScenarioWriter, mode: str, values: Sequence[Array]) -> list[tuple[float, float]]:
    """Intervals around numbers that uniform draws are compared with (a rate of dropping), largest effect first.

    All draws get one level; where the outputs jump between two levels, a comparison lies between them.
    """
    if sum(value.size for value in (*writer.states[0].values(), *values)) > budgets.REACH_ELEMENTS:
        return []

    def at(level: float) -> Result | None:
        return attempt(lambda: writer.original.run(writer.states[0], values, mode, drawing=Drawing("low", ends=(level, level))))

    levels = [float(level) for level in np.linspace(budgets.TILT, 1 - budgets.TILT, budgets.LEVELS + 1)]
    results = [at(level) for level in levels]
    cells = sorted(range(budgets.LEVELS), key=lambda index: -_apart(results[index], results[index + 1]))
    intervals = []
    for index in cells[: budgets.COMPARED_WITH]:
        low, high, below, above = levels[index], levels[index + 1], results[index], results[index + 1]
        # Bisection: the half with the larger difference of outputs holds the jump.
        while high - low > budgets.COMPARED / 8:
            middle = (low + high) / 2
            between = at(middle)
            if _apart(below, between) >= _apart(between, above):
                high, above = middle, between
            else:
                low, below = middle, between
        if _apart(below, above) > budgets.JUMP:
            intervals.append((low - budgets.COMPARED, high + budgets.COMPARED))
    return intervals


def _apart(first: Result | None, second: Result | None) -> float:
    """The largest difference of two results, in units of the larger's largest value; 0 where they cannot be compared."""
    if first is None or second is None:
        return 0.0
    largest = 0.0
    for key, one in first.arrays.items():
        other = second.arrays.get(key)
        if other is not None and one.shape == other.shape and one.size and one.dtype.kind in "fciub":
            wide = [np.nan_to_num(np.asarray(array, np.complex128 if array.dtype.kind == "c" else np.float64)) for array in (one, other)]
            scale = max(float(np.abs(array).max()) for array in wide)
            largest = max(largest, float(np.abs(wide[0] - wide[1]).max()) / scale if scale else 0.0)
    return largest
