"""kill -9, SIGTERM and Ctrl-C at chosen moments of the real command line over scripted services; then `resume`.

This tests the plumbing: no module is run, and no rewrite is judged.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.evals.model_loop.scripted_endpoint import Move, endpoint
from migrate_agent.tests.agent.repositories import git, module, repository

DRIVER = Path(__file__).with_name("driver.py")
FILES = {
    "a.py": module("A"),
    "b.py": f"from a import A\n{module('B', needs='A')}",
    "c.py": module("C", "script: fail"),
    "d.py": module("D", "script: hole"),
    "e.py": module("E"),
}


def drive(root: Path, moment: int, number: int, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One process of the command line; it dies at this moment."""
    command = [sys.executable, str(DRIVER), str(moment), str(number), *arguments, "--repo", str(root)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False, timeout=120)


def result(root: Path) -> tuple[Any, str]:
    """The report without what may differ between runs (times, the folder), and the branch's commits."""
    report = json.loads((root.parent / "report.json").read_text())
    report.pop("repo")
    for unit in report["units"]:
        unit.pop("seconds")
        unit["llm"].pop("seconds")
    return report, git(root, "log", "--format=%H %s", report["branch"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, int]:
    """What a run comes to that nobody kills, and how many moments it has."""
    folder = tmp_path_factory.mktemp("undisturbed")
    root = repository(folder / "repo", FILES)
    done = drive(root, 0, 0, "run", "--yes", "--report", str(folder / "report.json"), MOMENTS_FILE=str(folder / "moments"))
    assert done.returncode == 1, done.stderr
    return result(root), int((folder / "moments").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.2, 0.35, 0.5, 0.65, 0.8, 0.92, 0.99])
def test_killed_and_resumed_run_is_the_undisturbed_one(undisturbed: tuple[Any, int], tmp_path: Path, part: float) -> None:
    expected, moments = undisturbed
    root = repository(tmp_path / "repo", FILES)
    killed = drive(root, round(moments * part), signal.SIGKILL, "run", "--yes", "--report", str(tmp_path / "report.json"))
    assert killed.returncode == -signal.SIGKILL
    resumed = drive(root, 0, 0, "resume")
    assert resumed.returncode == 1, resumed.stderr
    assert result(root) == expected
    assert git(root, "worktree", "list").count("\n") == 0
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "part"), [(signal.SIGKILL, 0.4), (signal.SIGKILL, 0.7), (signal.SIGINT, 0.6), (signal.SIGTERM, 0.6)])
def test_stopped_with_several_units_at_work(undisturbed: tuple[Any, int], tmp_path: Path, number: int, part: float) -> None:
    expected, moments = undisturbed
    root = repository(tmp_path / "repo", FILES)
    stopped = drive(root, round(moments * part), number, "run", "--yes", "--jobs", "3", "--report", str(tmp_path / "report.json"))
    assert stopped.returncode in (-signal.SIGKILL, 128 + number)
    resumed = drive(root, 0, 0, "resume")
    assert resumed.returncode == 1, resumed.stderr
    assert result(root) == expected


@pytest.mark.slow
def test_killed_before_it_began(undisturbed: tuple[Any, int], tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", FILES)
    assert drive(root, 2, signal.SIGKILL, "run", "--yes").returncode == -signal.SIGKILL
    assert drive(root, 0, 0, "resume").returncode == 2
    assert drive(root, 0, 0, "run", "--yes", "--report", str(tmp_path / "report.json")).returncode == 1
    assert result(root) == undisturbed[0]


@pytest.mark.slow
def test_killed_again_and_again(undisturbed: tuple[Any, int], tmp_path: Path) -> None:
    expected, moments = undisturbed
    root = repository(tmp_path / "repo", FILES)
    killed = drive(root, moments // 3, signal.SIGKILL, "run", "--yes", "--report", str(tmp_path / "report.json"))
    deaths = 1
    while killed.returncode == -signal.SIGKILL:
        deaths += 1
        assert deaths < 12
        killed = drive(root, moments // 3, signal.SIGKILL, "resume")
    assert killed.returncode == 1, killed.stderr
    assert deaths > 3
    assert result(root) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_run_says_how_to_go_on(undisturbed: tuple[Any, int], tmp_path: Path, number: int, status: int) -> None:
    expected, moments = undisturbed
    root = repository(tmp_path / "repo", FILES)
    stopped = drive(root, moments // 2, number, "run", "--yes", "--report", str(tmp_path / "report.json"))
    assert stopped.returncode == status, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert f"migrate-agent resume --repo {root}" in stopped.stderr.splitlines()[-1]
    partial = json.loads((tmp_path / "report.json").read_text())
    assert "not reached: the run was interrupted" in [unit["reason"] for unit in partial["units"]]
    assert drive(root, 0, 0, "resume").returncode == 1
    assert result(root) == expected


@pytest.mark.slow
def test_killed_three_times_with_a_model_and_no_call_is_paid_twice(tmp_path: Path) -> None:
    """`evals.bench.kills` does this with the real services, at random moments and more often."""
    files = {**FILES, "migrate.toml": '[[price]]\nmodel = "small"\ninput = 1000\noutput = 10000\n'}

    def answer(request: dict[str, Any], number: int) -> Move:
        """First useless, then wrong, then right: by what the prompt says of the attempts so far."""
        text = request["messages"][-1]["content"]
        name = "C" if "class C(" in text else "D"
        body = "repaired = True" if "attempt 3" in text else "wrong = True"
        code = f"class {name}:\n    {body}" if "attempt 2" in text else "("
        return json.dumps({"holes": [], "whole_class": code, "reason": "so"})

    outcomes, calls = [], []
    for name, deaths in (("undisturbed", 0), ("killed", 3)):
        root = repository(tmp_path / name / "repo", files)
        with endpoint(answer) as script:
            model = ("--model", "small", "--base-url", script.url, "--report", str(root.parent / "report.json"))
            file = root.parent / "moments"
            moments = int((tmp_path / "undisturbed" / "moments").read_text()) if deaths else 0
            for death in range(deaths):
                arguments = ("run", "--yes", *model) if death == 0 else ("resume",)
                assert drive(root, moments // 3, signal.SIGKILL, *arguments).returncode == -signal.SIGKILL
            last = drive(root, 0, 0, *(("resume",) if deaths else ("run", "--yes", *model)), MOMENTS_FILE=str(file))
        assert last.returncode == (0 if "verified" in last.stdout and "0 failed, 0 unverified" in last.stdout else 1), last.stderr
        outcomes.append(result(root))
        calls.append(script.paid)
        assert set(script.paid.values()) == {1}, "each request is paid once"
    assert outcomes[0] == outcomes[1]
    assert len(calls[0]) == len(calls[1]) > 3
    assert [unit["llm"]["calls"] for unit in outcomes[0][0]["units"]].count(0) == 3
