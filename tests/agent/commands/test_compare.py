"""`migrate-agent compare`: exit status, last line, report and page."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("text", ["", "no json\n", '{"step": 1}\n'])
def test_a_bad_log_is_one_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.jsonl").write_text(text)
    assert guarded(["compare", log(tmp_path, "a.jsonl"), str(tmp_path / "b.jsonl"), "--repo", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"migrate-agent: cannot say: {tmp_path}/b.jsonl")
