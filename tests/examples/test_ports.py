"""`migrate-agent verify --against` on ports in other libraries: report, page, and a failure that is run again."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from migrate_agent.tests.agent.repositories import repository

PORTS = Path(__file__).parent / "fixtures/ports"
COMMAND = [sys.executable, "-c", "from migrate_agent.agent.cli import main; main()"]


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One process of the real command line, in the repository."""
    return subprocess.run([*COMMAND, *arguments], cwd=root, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def ports(tmp_path: Path) -> Path:
    """A repository with the fixtures."""
    shutil.copytree(PORTS, tmp_path / "repo", ignore=shutil.ignore_patterns("__pycache__"))
    return repository(tmp_path / "repo", {})


@pytest.mark.parametrize(
    ("target", "weights"),
    [("linen_net.py", "linen.toml"), pytest.param("equinox_net.py:Network", "equinox.toml", marks=pytest.mark.slow)],
)
def test_port_is_verified_with_report_and_page(target: str, weights: str, ports: Path, tmp_path: Path) -> None:
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    options = ("--weights", weights, "--sandbox", "process", "--report", str(report), "--html", str(page))
    done = run(ports, "verify", "model.py:Net", "--against", target, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(report.read_text())
    assert document["version"] == 1 and document["totals"]["verified"] == 1
    assert document["units"][0]["figures"]["candidate_peak_memory_bytes"] > 0
    assert len(document["units"][0]["verdicts"]) > 20
    text = page.read_text()
    assert text.count("<svg") >= 6 and "src=" not in text and "http" not in text


@pytest.mark.slow
def test_failure_of_an_equinox_port_is_replayed(ports: Path) -> None:
    text = (ports / "equinox_net.py").read_text().replace("approximate=False", "approximate=True")
    (ports / "wrong_net.py").write_text(text)
    options = ("--weights", "equinox.toml", "--sandbox", "process")
    refused = run(ports, "verify", "model.py:Net", "--against", "wrong_net.py:Network", *options)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    line = next(line for line in refused.stdout.splitlines() if "--replay" in line)
    program, *arguments = shlex.split(line.partition(": ")[2])
    assert program == "migrate-agent"
    again = run(ports, *arguments)
    assert again.returncode == 1 and "first differs in" in again.stdout, again.stdout + again.stderr
    right = run(ports, *(word.replace("wrong_net", "equinox_net") for word in arguments))
    assert right.returncode == 0 and "no call diverges" in right.stdout, right.stdout + right.stderr
