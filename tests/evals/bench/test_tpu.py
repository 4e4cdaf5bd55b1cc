"""The tables of `bench.tpu` and `bench.kernels`: what their rows say, and where they stand in the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.evals.bench import kernels as bench
from migrate_agent.evals.bench.tpu import MARKS, OUTPUT, between, for_page, table
from migrate_agent.tools.kernels.catalogue import Case, Kernel
from migrate_agent.tools.kernels.catalogue import kernels as catalogue

ROW: dict[str, Any] = {
    "case": "gpt/model.py:GPT",
    "topology": "v5e:4x4",
    "program": "train",
    "batch": 64,
    "devices": 16,
    "peak": 2**30,
    "hbm": 2**34,
    "flops": 2e12,
    "bytes": 2**20,
    "bound": 0.0102,
    "bound_by": "compute",
    "collectives": [{"kind": "all-reduce", "count": 2, "bytes": 2**21}],
    "padding": 0.25,
    "refused": None,
}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (ROW, "| train | 64 | 1 GiB | 16 GiB | 2T | 1 MiB | ≥ 10.2 ms (compute) | 2 all-reduce 2 MiB | 25% |"),
        ({**ROW, "refused": {"kind": "hbm", "line": "model_jax.py:41"}}, "| refused (hbm) at model_jax.py:41 |"),
        ({"case": "x", "topology": "v6e:1x1", "error": "no example"}, "not asked: no example"),
    ],
)
def test_rows_say_what_was_found(row: dict[str, Any], told: str) -> None:
    *_, last = table([row])
    assert told in last
    assert last.count("|") == 12


def test_the_table_stands_between_its_marks() -> None:
    page = f"head\n{MARKS[0]}\nold\n{MARKS[1]}\ntail\n"
    assert between(page, "new") == f"head\n{MARKS[0]}\nnew\n{MARKS[1]}\ntail\n"
    with pytest.raises(ValueError, match="lacks"):
        between("head", "new")


def test_page_shows_the_stored_rows() -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs/tpu.md").read_text(encoding="utf-8")
    rows = for_page(json.loads((root / OUTPUT).read_text(encoding="utf-8"))["rows"])
    assert between(page, "\n".join(table(rows))) == page


def test_rows_of_kernels_are_kept_over_runs() -> None:
    old: list[dict[str, Any]] = [
        {"kernel": "ssd", "case": "1x2", "dtype": "float32", "v5e": {"kernels": 1}},
        {"kernel": "rotary", "case": "3", "dtype": "float32"},
    ]
    new: list[dict[str, Any]] = [{"kernel": "ssd", "case": "1x2", "dtype": "float32", "v6e": {"refused": "too large"}, "right": True}]
    rows = bench.merged(old, new)
    assert [(row["kernel"], row.get("v5e"), row.get("right")) for row in rows] == [("ssd", {"kernels": 1}, True), ("rotary", None, None)]
    lines = list(bench.table(rows))
    assert "| ssd | 10 | 1 of 1 | 0 of 1 | not asked |" in lines
    assert lines[-1].strip() == "ssd 1x2 float32 on v6e: too large"


def test_the_compiler_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, str]] = []

    def compiled(kernel: Kernel, case: Case, dtype: Any, generation: str) -> dict[str, Any]:
        asked.append((case.label, dtype.__name__, generation))
        return {"kernels": 1}

    monkeypatch.setattr(bench, "compiled", compiled)
    first, second = (case.label for case in catalogue()["rotary"].shapes[:2])
    known = [{"kernel": "rotary", "case": first, "dtype": "float32", "v5e": {}, "v6e": {}}]
    found = list(bench.rows(["rotary"], ["v5e", "v6e"], False, False, 2, earlier=known))
    assert [(row["case"], row["dtype"]) for row in found] == [(first, "bfloat16"), (second, "float32"), (second, "bfloat16")]
    assert len(asked) == 6
    assert not list(bench.rows(["rotary"], ["v5e"], False, False, 1, text="no such shape"))
