"""`migrate-agent compare`: exit status, last line, report and page."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from migrate_agent.agent.cli import guarded


def log(folder: Path, name: str, factor: float = 1.0, shift: int = 0) -> str:
    file = folder / name
    file.write_text("".join(f'{{"step": {step + shift}, "loss": {factor * 4 / (1 + step)}}}\n' for step in range(20)))
    return str(file)


@pytest.mark.parametrize(
    ("factor", "shift", "status", "line"),
    [
        (1.001, 0, 0, "go: loss at 3 places"),
        (1.1, 0, 1, "roll back: loss at step 19"),
        (1.0, 50, 2, "cannot say: loss: the steps of both sides do not overlap: A has 0 to 19, B has 50 to 69"),
    ],
)
def test_exit_status_and_last_line(
    factor: float, shift: int, status: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [log(tmp_path, "a.jsonl"), log(tmp_path, "<b>.jsonl", factor, shift)]
    files = ["--report", f"{tmp_path}/report.json", "--html", f"{tmp_path}/page.html"]
    assert guarded(["compare", *runs, "--repo", str(tmp_path), *files]) == status
    assert capsys.readouterr().out.splitlines()[-1].startswith(line)
    assert json.loads((tmp_path / "report.json").read_text())["decision"] == line.partition(":")[0]
    page = (tmp_path / "page.html").read_text()
    assert line.partition(":")[0] in page and "&lt;b&gt;.jsonl" in page and "<b>.jsonl" not in page
    assert not re.search(r"(src|href)=|https?://|@import", page), "the page needs nothing from elsewhere"
    assert ("<svg" in page) == (shift == 0)


def test_limits_come_from_the_configuration_and_options(tmp_path: Path) -> None:
    runs = [log(tmp_path, "a.jsonl"), log(tmp_path, "b.jsonl", 1.1)]
    (tmp_path / "migrate.toml").write_text("[compare]\nloss = 0.2\nloss_rollback = 0.3\n")
    assert guarded(["compare", *runs, "--repo", str(tmp_path)]) == 0
    assert guarded(["compare", *runs, "--repo", str(tmp_path), "--loss", "0.01", "--loss-rollback", "0.05"]) == 1
    assert guarded(["compare", *runs, "--repo", str(tmp_path), "--at", "5,x"]) == 2


FALLING = [4 / (1 + step) for step in range(20)]


@pytest.mark.parametrize(
    ("a", "b", "status", "words"),
    [
        ({"loss": FALLING}, "", 2, "b.jsonl"),
        ({"loss": FALLING}, "no json\n", 2, "b.jsonl"),
        ({"loss": FALLING}, '{"step": 1}\n', 2, "b.jsonl"),
        ({"loss": FALLING}, {"accuracy": FALLING}, 2, "the logs share no metric"),
        ({"loss": FALLING}, {"loss": [math.nan] * 20}, 1, "loss of B is not finite from step 0 on"),
        ({"loss": [math.nan] * 20}, {"loss": FALLING}, 2, "loss of A is not finite from step 0 on"),
        ({"loss": FALLING}, {"loss": FALLING[:3]}, 2, "too few points"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    a: dict[str, list[float]], b: dict[str, list[float]] | str, status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, side in (("a", a), ("b", b)):
        rows = side if isinstance(side, str) else [{"step": step, key: row[step]} for key, row in side.items() for step in range(len(row))]
        (tmp_path / f"{name}.jsonl").write_text(rows if isinstance(rows, str) else "".join(f"{json.dumps(row)}\n" for row in rows))
    assert guarded(["compare", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), "--repo", str(tmp_path)]) == status
    captured = capsys.readouterr()
    line = (captured.err or captured.out).splitlines()[-1]
    assert ("roll back: " if status == 1 else "cannot say: ") in line and words in line
