"""The whole product on small repositories: real scan, recording, rewriting, sandbox and verifier, from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.agent.pr.run import last_run
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.tests.agent.repositories import git, repository

MODEL = '''import torch
from torch import nn


class Norm(nn.Module):
    """Layer normalisation, by hand."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5) * self.scale


class Net(nn.Module):
    """A layer and a norm."""

    def __init__(self, width: int):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.norm = Norm(width)

    def forward(self, x):
        return torch.relu(self.norm(self.fc(x)))
'''
EXAMPLE = '[[example]]\nmodule = "model.py:Net"\ninit = "8"\ncall = "torch.randn(4, 8)"\n'
FILES = {"model.py": MODEL, "migrate.toml": EXAMPLE}
COMMAND = [sys.executable, "-c", "from migrate_agent.agent.cli import main; main()"]


def migrate(*arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """One process of the real command line."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=timeout)


def steady(report: Path) -> Any:
    """The report without times (the figures are step times), folders and what the operating system decides (peak memory)."""
    document = json.loads(report.read_text())
    document.pop("repo")
    for unit in document["units"]:
        unit.pop("seconds")
        unit.pop("figures")
        for verdict in unit["verdicts"]:
            verdict.pop("detail")
    return document


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository after a run; the report lies beside it."""
    root = repository(tmp_path_factory.mktemp("whole") / "repo", FILES)
    report = root.parent / "report.json"
    done = migrate("run", "--yes", "--no-llm", "--sandbox", "process", "--repo", str(root), "--report", str(report))
    assert done.returncode == 0, done.stderr + done.stdout
    return root


def test_units_are_verified_and_run_without_torch(migrated: Path, tmp_path: Path) -> None:
    report = json.loads((migrated.parent / "report.json").read_text())
    assert [(unit["name"], unit["status"]) for unit in report["units"]] == [("Norm", "verified"), ("Net", "verified")]
    assert len(report["units"][1]["verdicts"]) > 10
    finished = last_run(open_repository(migrated))
    assert finished is not None
    assert finished.changes[1].sheet.weights == (
        ("fc.weight", "fc.kernel", "(8, 8)", "(1, 0)"),
        ("fc.bias", "fc.bias", "(8,)", ""),
        ("norm.scale", "norm.scale", "(8,)", ""),
    )
    git(migrated, "worktree", "add", "-q", "--detach", str(tmp_path / "out"), report["branch"])
    code = (
        "import sys; sys.modules['torch'] = None; import jax, model_jax; from flax import nnx;"
        "print(model_jax.Net(8, rngs=nnx.Rngs(0))(jax.numpy.ones((4, 8))).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "out", capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(4, 8)", done.stderr


@pytest.mark.ci
def test_verify_refuses_a_wrong_rewrite_and_names_the_place(migrated: Path) -> None:
    branch = json.loads((migrated.parent / "report.json").read_text())["branch"]
    git(migrated, "checkout", "-q", branch)
    mirror = (migrated / "model_jax.py").read_text()
    assert mirror.count("1e-05") + mirror.count("1e-5") == 1
    wrong = mirror.replace("1e-05", "1e-6").replace("1e-5", "1e-6").replace("class Net(", "class Other(")
    (migrated / "wrong_jax.py").write_text(wrong)
    verify = ("verify", "--sandbox", "process", "--repo", str(migrated), "model.py:Net")
    right = migrate(*verify)
    assert right.returncode == 0, right.stdout + right.stderr
    refused = migrate(*verify, "--against", "wrong_jax.py:Other")
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "first differs in norm" in refused.stdout
    elsewhere = migrated.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "model.py").write_text("from layers import Net as Renamed\n")
    (elsewhere / "layers.py").write_text(mirror)
    right = migrate(*verify, "--against", f"{elsewhere / 'model.py'}:Renamed")
    assert right.returncode == 0, right.stdout + right.stderr


@pytest.mark.slow
def test_check_fails_where_the_original_changed_and_names_the_submodule(migrated: Path, tmp_path: Path) -> None:
    branch = json.loads((migrated.parent / "report.json").read_text())["branch"]
    git(tmp_path, "clone", "-q", "-b", branch, str(migrated), "clone")
    clone, report = tmp_path / "clone", tmp_path / "check.json"
    (clone / "model.py").write_text(MODEL.replace("1e-5", "1e-3"))
    stale = migrate("check", "--sandbox", "process", "--repo", str(clone), "--module", "model.py:Net", "--report", str(report))
    assert stale.returncode == 1, stale.stdout + stale.stderr
    (unit,) = json.loads(report.read_text())["units"]
    assert (unit["name"], unit["status"], unit["changes"]) == ("Net", "failed", ["model.py:Norm changed"])
    assert "first differs in norm" in unit["reason"]


@pytest.mark.slow
def test_killed_while_verifying_and_resumed(migrated: Path, tmp_path: Path) -> None:
    root, report = repository(tmp_path / "repo", FILES), tmp_path / "report.json"
    arguments = ["run", "--yes", "--no-llm", "--sandbox", "process", "--repo", str(root), "--report", str(report)]
    with subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        seen = next((line for line in process.stderr if "Net: verifying: numeric" in line), "")
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert seen
    done = migrate("resume", "--repo", str(root))
    assert done.returncode == 0, done.stderr + done.stdout
    assert steady(report) == steady(migrated.parent / "report.json")
    branch = json.loads(report.read_text())["branch"]
    assert git(root, "log", "--format=%H", branch) == git(migrated, "log", "--format=%H", branch)
