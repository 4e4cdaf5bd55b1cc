"""Programs in a run: commits, holes and going on after a kill, with real git and a scripted migration."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate_agent.agent.config.errors import ConfigError, UsageError
from migrate_agent.agent.loop.nodes import programs as node
from migrate_agent.agent.loop.run import Options, Result, resume, start
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tools.programs.migrate import Migrated
from migrate_agent.tools.types import Draft, Evidence, Hole, Span, Verdict

TABLES = '[[program]]\nrun = "python train.py --steps 3"\n\n[[program]]\nrun = "python other.py"\n'
FILES = {"a.py": module("A"), "train.py": "import torch\n", "other.py": "import torch\n", "migrate.toml": TABLES}


def migrated(program: Any, *rest: Any) -> Migrated:
    """What the tools would say: `other.py` has a hole."""
    if program.source == "other.py":
        hole = Hole("other.py", Span(1, 0, 1, 0), "training-step", "no rule for it", "import torch")
        return Migrated("other_jax.py", Draft({}, (hole,)), reason="other.py:1: no rule for it")
    evidence = Evidence("train.py", (Verdict("spec", "runs", "pass", None, None, ""),), 1.0)
    return Migrated("train_jax.py", Draft({"train_jax.py": "import jax\n"}), evidence)


def never(*arguments: Any) -> str:
    raise AssertionError("no question may be asked")


def run(root: Path, how: Callable[..., Result] = start, *options: Options) -> Result:
    return how(root, *options, scripted.services(), Progress(Console(quiet=True)), never)


OPTIONS = Options(llm=False)


def test_each_verified_program_is_one_commit_after_the_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "migrate_program", migrated)
    root = repository(tmp_path / "repo", FILES)
    result = run(root, start, OPTIONS)
    rows = {unit.source: unit for unit in result.units}
    assert rows["train.py"].status == "verified" and rows["other.py"].status == "unverified"
    assert [hole.reason for hole in rows["other.py"].holes] == ["no rule for it"]
    changed = [set(git(root, "diff-tree", "-r", "--name-only", f"{sha}^", sha).split("\n")) for sha in commits(root, result.branch)]
    program = next(number for number, paths in enumerate(changed) if "train_jax.py" in paths)
    assert {"a_jax.py"} <= set().union(*changed[:program])
    assert not any("other_jax.py" in paths for paths in changed)
    assert git(root, "show", f"{result.branch}:.migrate/report.md").count("train.py") >= 1


def commits(root: Path, branch: str) -> list[str]:
    return git(root, "rev-list", "--reverse", f"main..{branch}").split()


def test_a_run_that_died_in_a_program_goes_on_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that were done before are not run again, and the branch is that of a run that did not die."""
    root, tried = repository(tmp_path / "repo", FILES), []

    def dying(program: Any, *rest: Any) -> Migrated:
        tried.append(program.source)
        if program.source == "other.py" and tried.count("other.py") == 1:
            raise KeyboardInterrupt
        return migrated(program)

    monkeypatch.setattr(node, "migrate_program", dying)
    with pytest.raises(KeyboardInterrupt):
        run(root, start, OPTIONS)
    result = run(root, resume)
    assert tried == ["train.py", "other.py", "other.py"]
    assert {unit.source: unit.status for unit in result.units if unit.kind == "program"} == {
        "train.py": "verified",
        "other.py": "unverified",
    }
    assert sum("train_jax.py" in git(root, "show", "--name-only", "--format=", sha) for sha in commits(root, result.branch)) == 1


def test_a_repository_of_scripts_alone_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of torch's own layers has no class, and a program may be named by its file."""
    monkeypatch.setattr(node, "migrate_program", migrated)
    files = {name: text for name, text in FILES.items() if name != "a.py"}
    root = repository(tmp_path / "repo", files)
    result = run(root, start, Options(llm=False, modules=("train.py",)))
    assert [(unit.source, unit.status) for unit in result.units] == [("train.py", "verified")]
    with pytest.raises(UsageError, match=r"tarin\.py"):
        run(repository(tmp_path / "other", files), start, Options(llm=False, modules=("tarin.py",)))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python trian.py", "the repository has no file trian.py"),
        ("python /etc/train.py", "/etc/train.py lies outside of the repository"),
        ("make train", "no script in 'make train'"),
    ],
)
def test_a_command_that_runs_no_script_of_the_repository_is_one_line(tmp_path: Path, command: str, message: str) -> None:
    root = repository(tmp_path / "repo", {"a.py": module("A"), "migrate.toml": f'[[program]]\nrun = "{command}"\n'})
    with pytest.raises(ConfigError, match=re.escape(message)):
        run(root, start, OPTIONS)


def test_the_report_names_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "migrate_program", migrated)
    root, report = repository(tmp_path / "repo", FILES), tmp_path / "report.json"
    run(root, start, Options(llm=False, report=report))
    kinds = {row["source"]: row["kind"] for row in json.loads(report.read_text())["units"]}
    assert kinds == {"a.py": "module", "train.py": "program", "other.py": "program"}
