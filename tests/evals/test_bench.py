"""The benchmarks run, and count what is there. What they measure is nobody's assertion."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from migrate_agent.evals.bench import measure, rewrite

VISION = Path(__file__).parents[2] / "examples" / "vision"
HERE = "migrate_agent.evals.bench"


def test_scan_counts_what_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    measure.report("scan", [measure.repeat(f"{HERE}.scan:measured", VISION, 2)])
    (row,) = json.loads(capfd.readouterr().out)["rows"]
    assert row["files"] == 5
    assert row["files_with_torch"] == 4
    assert row["files_not_parsed"] == 0
    assert row["units"] == {"rewrite": 11}
    assert len(row["samples"]["wall_seconds"]) == 2
    assert row["peak_bytes"] == max(row["samples"]["peak_bytes"])


def test_rewrite_counts_the_lines_that_came_out() -> None:
    row = measure.repeat(f"{HERE}.rewrite:measured", VISION, 1)
    rewritten = [VISION / "vision" / name for name in ("layers.py", "resnet.py", "vit.py")]
    lines = sum(file.read_text(encoding="utf-8").count("\n") for file in rewritten)
    package = (VISION / "vision" / "__init__.py").read_text(encoding="utf-8").count("\n")
    assert (row["units"], row["lines"]) in [(11, lines), (11, lines + package)]
    assert 0 < row["lines_per_second_with_parsing"] < row["lines_per_second"]


def test_nothing_to_rewrite_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("x = 1\n")
    with pytest.raises(ValueError, match="no unit to rewrite"):
        rewrite.measured(tmp_path)


def test_failure_in_the_measured_process_is_not_swallowed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        measure.repeat(f"{HERE}.rewrite:measured", tmp_path, 1)
    assert "no unit to rewrite" in capfd.readouterr().err


def test_arguments() -> None:
    options = measure.arguments("x", ["a", "b", "--repeat", "5"])
    assert (options.paths, options.repeat) == ([Path("a"), Path("b")], 5)
