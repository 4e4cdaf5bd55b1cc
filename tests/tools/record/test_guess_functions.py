"""What the parameters of functions take, guessed from their names and the code."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tools.record.guessing.functions import LABELS, PLACES, SCORES, TABLE, called_parameters, shown_values, usual_starts


def penalty(net: Any, x: Any, act: Any = abs) -> Any:
    return act(net(x))


def accuracy(output: Any, target: Any) -> Any:
    return output.argmax(-1) == target


def extract(table: Any, t: Any, shape: Any) -> Any:
    return table.gather(-1, t).reshape(shape)


def needed(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def test_what_the_code_calls_is_a_module_or_a_function() -> None:
    assert called_parameters(penalty) == ("net",)
    assert called_parameters(accuracy) == ()


@pytest.mark.parametrize(
    ("function", "starts"),
    [
        (accuracy, [{"output": SCORES, "target": LABELS}]),
        (extract, [{"table": TABLE, "t": PLACES}]),
        (penalty, []),
    ],
)
def test_usual_starts(function: Any, starts: list[dict[str, Any]]) -> None:
    assert list(usual_starts(needed(function))) == starts


def test_literals_of_the_repositorys_own_calls(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("extract(betas, t, (2, 3, 1))\nextract(betas, t, x.shape)\n")
    assert list(shown_values([tmp_path / "train.py"], extract, needed(extract), ()))[:1] == [{"shape": "(2, 3, 1)"}]
