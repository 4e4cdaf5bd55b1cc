"""Values derived from the original's results."""

from __future__ import annotations

import numpy as np
import pytest

from migrate_agent.tools.harness.torch_side.module import Result
from migrate_agent.tools.verify.original.outputs import moved_elements, overflows_soon, tipped


def test_comparisons_that_noise_tips_over_are_seen() -> None:
    def result(*values: float) -> Result:
        return Result({"out/0": np.array(values)})

    assert not tipped(result(1.0, np.nan, np.inf), [result(1.0 + 1e-9, np.nan, np.inf)])
    assert tipped(result(1.0, 2.0), [result(1.0, 2.0), result(1.0, 0.0)]) and tipped(result(1.0, np.inf), [result(1.0, 3.0)])
    assert tipped(Result({"out/0": np.array([1])}), [Result({"out/0": np.array([2])})])


@pytest.mark.parametrize(("changes", "elements"), [([0, 0, 0, 0], np.inf), ([0, 3, 0, 0], 1), ([1, 1, 1, 1], 4), ([1, 1, np.nan, 0], 2)])
@pytest.mark.parametrize("key", ["out/0", "grad/w"])
def test_elements_that_carry_the_noise_are_counted(key: str, changes: list[float], elements: float) -> None:
    assert moved_elements(Result({key: np.zeros(4)}), [Result({key: np.array(changes, float)})]) == elements


@pytest.mark.parametrize(("values", "soon"), [([1.0, -1e99], False), ([1.0, -1e120], True), ([np.inf, 1.0], False), ([], False)])
def test_outputs_whose_products_overflow_are_noticed(values: list[float], soon: bool) -> None:
    assert overflows_soon(Result({"out/0": np.array(values), "grad/w": np.array([1e200])})) is soon
