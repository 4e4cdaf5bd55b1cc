"""A run on a Ray cluster of processes of this machine comes to what it comes to on one machine, with a node killed half-way too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate_agent.agent.cli import guarded
from migrate_agent.agent.commands.check import CheckOptions, check
from migrate_agent.agent.loop.run import Options, start
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.evals import runner
from migrate_agent.evals.suite import Options as SuiteOptions
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.loop.test_speculation import FILES, never
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.types import Evidence

# Ray starts its processes by a fork in this one, in which other tests have used jax: they run another program at once.
pytestmark = [pytest.mark.ci, pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")]
ray: Any = pytest.importorskip("ray", reason="the extra `ray` is not installed")
cluster_utils: Any = pytest.importorskip("ray.cluster_utils")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    started = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield started
    ray.shutdown()
    started.shutdown()


def slow_verify(*arguments: Any) -> Evidence:
    """As scripted, and long enough to be killed in it."""
    threading.Event().wait(0.5)
    return scripted.verify(*arguments)


def plain() -> Any:
    """The scripted services, as a node imports them."""
    return scripted.services(on_nodes=plain)


def slow() -> Any:
    """With verifications that take their time."""
    return scripted.services(verify=slow_verify, on_nodes=slow)


def outcome(root: Path, files: dict[str, str], services: Any, **options: Any) -> tuple[Any, str]:
    """The report without times and the folder, and the branch's commits."""
    report = root.parent / f"{root.name}.json"
    start(repository(root, files), Options(report=report, **options), services, Progress(Console(quiet=True)), never)
    document = json.loads(report.read_text())
    document.pop("repo")
    for unit in document["units"]:
        unit.pop("seconds")
    return document, git(root, "log", "--format=%H %s", document["branch"])


def test_a_run_on_a_cluster_comes_to_the_same(tmp_path: Path, cluster: Any) -> None:
    cluster.add_node(num_cpus=2)
    expected = outcome(tmp_path / "one", FILES, plain())
    assert outcome(tmp_path / "many", FILES, plain(), cluster=cluster.address) == expected


def test_the_units_of_a_lost_node_run_elsewhere(tmp_path: Path, cluster: Any) -> None:
    files = {f"{name}.py": module(name.upper()) for name in "abcdefghij"}
    expected = outcome(tmp_path / "one", files, plain())
    lost = cluster.add_node(num_cpus=2)
    killer = threading.Timer(3, lambda: cluster.remove_node(lost, allow_graceful=False))
    killer.start()
    assert outcome(tmp_path / "many", files, slow(), cluster=cluster.address) == expected
    killer.join()


def checked(root: Path, services: Any, capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[Any, ...]:
    """Status, report without times, and what is told, of a check of all units."""
    report = root.parent / f"check-{len(options)}.json"
    status = check(root, CheckOptions(everything=True, report=report, **options), services, Progress(Console(quiet=True)))
    document = json.loads(report.read_text())
    for unit in document["units"]:
        unit.pop("seconds", None)
    return status, document, capsys.readouterr().out


def test_a_check_on_a_cluster_comes_to_the_same(tmp_path: Path, cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.add_node(num_cpus=2)
    root = repository(tmp_path / "repo", FILES)
    result = start(root, Options(), plain(), Progress(Console(quiet=True)), never)
    git(root, "checkout", "-q", result.branch)
    wrong = next(path for path in map(root.joinpath, FILES) if '"""A layer."""' in path.read_text())
    wrong.write_text(wrong.read_text().replace('"""A layer."""', '"""script: fail"""', 1))
    capsys.readouterr()
    expected = checked(root, plain(), capsys)
    assert checked(root, plain(), capsys, cluster=cluster.address) == expected
    assert expected[0] == 1 and {unit["status"] for unit in expected[1]["units"]} == {"verified", "failed"}


def test_a_suite_on_a_cluster_comes_to_the_same(tmp_path: Path, cluster: Any) -> None:
    cluster.add_node(num_cpus=2)
    results = []
    for number, address in enumerate(("", cluster.address)):
        folder = tmp_path / str(number)
        status = runner.run("ops", SuiteOptions("clamp,flip", samples=2), output=folder, cluster=address)
        cases = json.loads(next(folder.glob("*.json")).read_text())["cases"]
        results.append((status, sorted(cases, key=lambda case: str(case["case"]))))
    assert results[0] == results[1] and results[0][0] == 0 and len(results[0][1]) > 1


def test_no_cluster_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A")})
    assert guarded(["run", "--repo", str(root), "--yes", "--no-llm", "--cluster", "127.0.0.1:1"]) == 2
    assert "no Ray cluster answers at 127.0.0.1:1" in capsys.readouterr().err.splitlines()[-1]
