"""The decision about two sides, case by case."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from migrate_agent.tools.compare.compare import compare
from migrate_agent.tools.compare.limits import Limits
from migrate_agent.tools.compare.rows import log_of_rows

DEFAULT = Limits()
Rows = list[Mapping[str, Any]]


def curve(factor: float = 1.0, noise: float = 0.0, seeds: Sequence[int] = (0,), second: float = 0.1, **columns: float) -> list[Rows]:
    """Runs of a loss that falls; each seed shifts its whole curve."""
    runs: list[Rows] = []
    for seed in seeds:
        shift = factor * (1 + noise * random.Random(seed).gauss(0, 1))
        runs.append([{"step": step, "loss": shift * 4 / (1 + step / 50), "time": second * step, **columns} for step in range(0, 200, 10)])
    return runs


def changed(change: Callable[[dict[str, Any]], dict[str, Any]], rows: Rows) -> Rows:
    return [change(dict(row)) for row in rows]


def requests(count: int, latency: float, failures: int = 0) -> list[Rows]:
    return [[{"latency_ms": latency * (1 + (i * 37 % 100) / 100), "status": 500 if i < failures else 200} for i in range(count)]]


def served_tokens(batch: int) -> list[Rows]:
    return [[{"step": step, "tokens": step * batch, "loss": 5 / (1 + step * batch / 5000)} for step in range(1, 6400 // batch)]]


@dataclass(frozen=True)
class Case:
    a: list[Rows]
    b: list[Rows]
    decision: str
    line: str
    limits: Limits = DEFAULT


BASE = curve()
CASES = {
    "same": Case(BASE, BASE, "go", "loss at 3 places: at most 0 %"),
    "within half a percent": Case(BASE, curve(1.004), "go", "at most 0.4 % apart"),
    "between": Case(BASE, curve(1.008), "cannot say", "give several runs a side"),
    "worse": Case(BASE, curve(1.02), "roll back", "2 % is beyond 1 %"),
    "better by far is another program": Case(BASE, curve(0.9), "roll back", "10 % is beyond 1 %"),
    "limits of the user": Case(BASE, curve(1.02), "go", "2 %", Limits(loss=0.03, loss_rollback=0.05)),
    "noise that is given": Case(BASE, curve(1.008), "go", "0.8 %", Limits(noise=0.0035)),
    "within the noise of the seeds": Case(
        curve(noise=0.004, seeds=range(5)), curve(1.006, noise=0.004, seeds=range(5, 10)), "go", "loss at 3 places"
    ),
    "beyond the noise of the seeds": Case(
        curve(noise=0.004, seeds=range(5)), curve(1.03, noise=0.004, seeds=range(5, 10)), "roll back", "noise"
    ),
    "noise too large": Case(
        curve(noise=0.05, seeds=(0, 2, 4)), curve(noise=0.05, seeds=(1, 3, 5)), "cannot say", "noise between runs is too large"
    ),
    "worse by more than a large noise": Case(
        curve(noise=0.02, seeds=range(4)), curve(2.0, noise=0.02, seeds=range(4, 8)), "roll back", "beyond 1 %"
    ),
    "faster": Case(BASE, curve(second=0.05), "go", "100 % faster"),
    "a little slower": Case(BASE, curve(second=0.107), "cannot say", "7 % is beyond 5 %"),
    "a clock that stands still is none": Case(BASE, [changed(lambda row: {**row, "time": 0.1}, BASE[0])], "go", "loss at 3 places"),
    "slower": Case(BASE, curve(second=0.12), "roll back", "20 % slower"),
    "nan on the new side": Case(
        BASE,
        [changed(lambda row: {**row, "loss": float("nan") if row["step"] > 100 else row["loss"]}, BASE[0])],
        "roll back",
        "not finite from step 110",
    ),
    "nan on the old side": Case(
        [changed(lambda row: {**row, "loss": float("inf") if row["step"] > 100 else row["loss"]}, BASE[0])],
        BASE,
        "cannot say",
        "loss of A is not finite",
    ),
    "no shared metric": Case(
        BASE, [[{"step": step, "reward": 1.0} for step in range(20)]], "cannot say", "the logs share no metric: A has loss; B has reward"
    ),
    "only speed is shared": Case(
        [[{"step": step, "tokens_per_sec": 5.0} for step in range(20)]],
        [[{"step": step, "tokens_per_sec": 5.0} for step in range(20)]],
        "cannot say",
        "share no loss",
    ),
    "no overlap": Case(
        BASE,
        [changed(lambda row: {**row, "step": row["step"] + 500}, BASE[0])],
        "cannot say",
        "do not overlap: A has 0 to 190, B has 500 to 690",
    ),
    "too few points": Case(BASE, [BASE[0][:3]], "cannot say", "too few points: both sides have 3 steps in common, and 5 are needed"),
    "a metric that is not there": Case(BASE, BASE, "cannot say", "bleu is not in every log; all have loss", Limits(metrics=("bleu",))),
    "a place outside": Case(BASE, BASE, "cannot say", "step 900 is not in the common range", Limits(at=(900.0,))),
    "no such axis": Case(BASE, BASE, "cannot say", "not every log says its tokens", Limits(by="tokens")),
    "baseline of zero": Case(
        [[{"step": step, "loss": 0.0} for step in range(9)]],
        [[{"step": step, "loss": 1.0} for step in range(9)]],
        "cannot say",
        "loss of A is 0",
    ),
    "by tokens where batches differ": Case(served_tokens(32), served_tokens(64), "go", "at most 0"),
    "serving": Case(requests(6000, 20), requests(6000, 22), "go", "latency p99"),
    "serving, slower": Case(requests(6000, 20), requests(6000, 26), "roll back", "30 % is beyond 25 %"),
    "serving, errors": Case(requests(6000, 20), requests(6000, 20, 30), "roll back", "30 of 6000 requests of B failed"),
    "serving, few requests": Case(requests(40, 20), requests(40, 20), "cannot say", "too few to tell"),
    "serving, five requests": Case(requests(5, 20), requests(5, 20), "cannot say", "too few"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_decisions(case: Case) -> None:
    a, b = ([log_of_rows(str(index), rows) for index, rows in enumerate(side)] for side in (case.a, case.b))
    result = compare(a, b, case.limits)
    assert (result.decision, case.line in result.line) == (case.decision, True), result.line
    assert result.line.startswith(f"{result.decision}: ") and "\n" not in result.line


def test_tokens_are_the_axis_where_steps_are_not_equal() -> None:
    a, b = ([log_of_rows("a", rows) for rows in served_tokens(batch)] for batch in (32, 64))
    result = compare(a, b, Limits())
    assert result.axis == "tokens" and "a step of A has 32 tokens, one of B 64" in result.notes[0]
    assert compare(a, b, replace(Limits(), by="step")).decision == "roll back"


def test_what_is_not_judged_is_noted() -> None:
    a, b = ([log_of_rows("x", rows) for rows in curve(lr=rate)] for rate in (1e-3, 1e-2))
    assert any(note.startswith("not judged: lr is 0.001 and 0.01") for note in compare(a, b, Limits()).notes)
