"""What other repositories take from here: the GitHub Action, the GitLab template and the pre-commit hooks, each read and run for real."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from migrate_agent.agent.loop.run import Options, start
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository

ROOT = Path(__file__).parents[1]
ACTION, GITLAB, HOOKS = ROOT / "action.yml", ROOT / "ci" / "gitlab" / "migrate-agent.yml", ROOT / ".pre-commit-hooks.yaml"
BIN = Path(sys.executable).parent


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with two verified ports, merged."""
    files = {"a.py": module("Alpha"), "b.py": f"from a import Alpha\n{module('Beta', needs='Alpha')}"}
    root = repository(tmp_path / "repo", files)
    result = start(root, Options(), scripted.services(), Progress(), lambda context, state: "accept")
    git(root, "checkout", "-q", result.branch)
    return root


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT", "RUNNER", "CI", "PRE_COMMIT"))}
    return {
        **kept,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(tmp_path / "hooks"),
        "JAX_PLATFORMS": "cpu",
        **more,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("check-jsonschema", "--builtin-schema", "vendor.github-actions", str(ACTION)),
        ("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", str(GITLAB)),
        ("pre-commit", "validate-manifest", str(HOOKS)),
    ],
)
def test_files_are_what_their_readers_expect(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run([BIN / arguments[0], *arguments[1:]], env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_documentation_says_to_write_is_what_its_readers_expect(tmp_path: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "check.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    readers = (
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
        ("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
        ("pre-commit", "validate-config"),
    )
    for block, (name, *arguments) in zip(blocks, readers, strict=True):
        file = tmp_path / "block.yaml"
        file.write_text(block, encoding="utf-8")
        command = [str(BIN / name), *arguments, str(file)]
        done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
        assert done.returncode == 0, block + done.stdout + done.stderr
    variables = yaml.safe_load(GITLAB.read_text())["migrate-agent-check"]["variables"]
    assert yaml.safe_load(blocks[1])["migrate-agent-check"]["variables"].keys() - variables.keys() == {"GIT_SUBMODULE_STRATEGY"}


def test_the_actions_steps_use_inputs_that_it_has() -> None:
    action = yaml.safe_load(ACTION.read_text())
    used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text()))
    assert used == set(action["inputs"])
    shown = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert not [text for text in shown if "${{" in text], "an input in a script's text could say more than a value"


def step(name: str) -> Mapping[str, Any]:
    """A step of the action."""
    return next(row for row in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if row["name"] == name)


def run_step(row: Mapping[str, Any], inputs: Mapping[str, str], tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it as GitHub does: inputs put into `env`, then bash."""
    defaults = {key: value["default"] for key, value in yaml.safe_load(ACTION.read_text())["inputs"].items()}
    given = {**defaults, **inputs}
    values = {key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text) for key, text in row["env"].items()}
    runner = tmp_path / "runner"
    runner.mkdir(exist_ok=True)
    places = {
        "RUNNER_TEMP": str(runner),
        "GITHUB_OUTPUT": str(runner / "output"),
        "GITHUB_STEP_SUMMARY": str(runner / "summary"),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_ACTIONS": "true",
    }
    (runner / "step.sh").write_text(row["run"])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(runner / "step.sh")]
    env = environment(tmp_path, **places, **values, **more)
    return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)


@pytest.mark.ci
def test_the_action_checks(repo: Path, tmp_path: Path) -> None:
    inputs = {"repo": "repo", "sandbox": "process", "modules": "a.py:Alpha\n\nb.py:Beta\n", "arguments": "--list --versions"}
    held = run_step(step("Check"), inputs, tmp_path)
    assert held.returncode == 0, held.stdout + held.stderr
    assert "2 verified units: 2 unchanged" in held.stdout
    (repo / "b_jax.py").unlink()
    failed = run_step(step("Check"), inputs, tmp_path)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    error = "::error file=b_jax.py,title=migrate-agent check::b.py:Beta and its port no longer match: its port is gone: b_jax.py defines no Beta"
    assert error in failed.stdout.splitlines()
    runner = tmp_path / "runner"
    report = (runner / "output").read_text().splitlines()[-1].removeprefix("report=")
    assert {unit["name"]: unit["status"] for unit in json.loads(Path(report).read_text())["units"]} == {
        "Alpha": "unchanged",
        "Beta": "stale",
    }
    summary = (runner / "summary").read_text()
    assert "1 unchanged" in summary and "::error" not in summary
    (repo / ".migrate" / "verified" / "a.py" / "Alpha.json").write_text("no JSON")
    assert run_step(step("Check"), inputs, tmp_path).returncode == 2


def test_the_action_installs_what_is_asked(tmp_path: Path) -> None:
    """With a stand-in for python that prints what it is given: installing for real needs the package index."""
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "python"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}{os.pathsep}{os.environ['PATH']}"
    done = run_step(step("Install"), {"requirements": "needs all.txt"}, tmp_path, PATH=path)
    given = done.stdout.splitlines()
    assert given[:3] == ["-m", "pip", "install"]
    assert given[-5:] == ["--extra-index-url", "https://download.pytorch.org/whl/cpu", "--requirement", "./needs all.txt", str(ROOT)]


@pytest.mark.ci
def test_the_gitlab_job_checks(repo: Path, tmp_path: Path) -> None:
    job = yaml.safe_load(GITLAB.read_text())["migrate-agent-check"]
    values = {name: str(value) for name, value in job["variables"].items() if name.startswith("MIGRATE_AGENT")}
    values |= {"CI_PROJECT_DIR": str(repo), "MIGRATE_AGENT_SANDBOX": "process", "MIGRATE_AGENT_ARGUMENTS": "--list"}
    (script,) = job["script"]

    def run() -> int:
        return subprocess.run(
            ["sh", "-ec", script], cwd=repo, env=environment(tmp_path, **values), capture_output=True, check=False
        ).returncode

    assert run() == 0
    (repo / "a.py").write_text((repo / "a.py").read_text().replace("return self.fc(x)", "return -self.fc(x)"))
    assert run() == 1
    (report,) = (repo / path for path in job["artifacts"]["paths"])
    assert {unit["name"]: unit["status"] for unit in json.loads(report.read_text())["units"]} == {"Alpha": "stale", "Beta": "stale"}


@pytest.mark.ci
def test_the_hooks_check(repo: Path, tmp_path: Path) -> None:
    hooks = repository(tmp_path / "project", {HOOKS.name: HOOKS.read_text()})
    revision = git(hooks, "rev-parse", "HEAD")
    rows = [{"id": row["id"]} for row in yaml.safe_load(HOOKS.read_text())]
    config = {"repos": [{"repo": str(hooks), "rev": revision, "hooks": rows}]}
    (repo / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(repo, "add", "-A")

    def run(*arguments: str) -> tuple[int, str]:
        command = [str(BIN / "pre-commit"), "run", *arguments]
        done = subprocess.run(command, cwd=repo, env=environment(tmp_path), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    status, told = run("--all-files")
    assert status == 0, told
    assert len(re.findall(r"Passed", told)) == len(rows)
    (repo / "b_jax.py").write_text((repo / "b_jax.py").read_text().replace("class Beta", "class Gone"))
    git(repo, "add", "-A")
    status, told = run()
    assert status == 1, told
    assert told.count("its port is gone: b_jax.py defines no Beta") == len(rows)
