"""The command line over scripted services: exit statuses, one clear line for what is wrong, and the report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import typer

from migrate_agent.agent import cli
from migrate_agent.agent.config.errors import MissingError
from migrate_agent.agent.runs.folder import KEPT, locked
from migrate_agent.sandbox.base import SandboxUnavailable
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository, write

TWO = {"a.py": module("Alpha"), "b.py": f"from a import Alpha\n{module('Beta', needs='Alpha')}"}


@pytest.fixture(autouse=True)
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """Scripted services in place of the real ones, and the signal handlers put back."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    real = types.ModuleType("migrate_agent.agent.loop.wiring")
    real.services = lambda warn: scripted.services()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "migrate_agent.agent.loop.wiring", real)
    yield real
    for number, handler in handlers.items():
        signal.signal(number, handler)


def statuses(report: Path) -> dict[str, str]:
    """Class name → status."""
    return {unit["name"]: unit["status"] for unit in json.loads(report.read_text())["units"]}


def bare(path: Path) -> Path:
    path.mkdir()
    git(path, "init", "-q", "--bare")
    return path


def no_commit(path: Path) -> Path:
    path.mkdir()
    git(path, "init", "-q")
    return path


def no_git(path: Path) -> Path:
    path.mkdir()
    return path


def with_files(files: Mapping[str, str]) -> Callable[[Path], Path]:
    return lambda path: repository(path, files)


def inside(path: Path) -> Path:
    return repository(path, {"sub/a.py": module("A")}) / "sub"


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (no_git, [], "is not a git repository: run `git init`"),
        (lambda path: path, [], "is not a folder"),
        (bare, [], "bare repository"),
        (no_commit, [], "no commit yet"),
        (inside, [], "lies inside the repository"),
        (with_files({"a.py": "print(1)\n"}), [], "no Python file that imports torch"),
        (with_files({"readme": "hi"}), [], "no Python file that imports torch"),
        (with_files({"a.py": "import torch\nx = torch.ones(1)\n"}), [], "defines no torch.nn.Module and no function"),
        (with_files(TWO), ["--module", "a.py:Alhpa"], "did you mean a.py:Alpha"),
        (with_files(TWO), ["--module", "aa.py"], "aa.py"),
        (with_files({**TWO, "migrate.toml": "[run]\njobz = 2\n"}), [], "migrate.toml:2: unknown key `run.jobz`"),
        (with_files(TWO), ["--branch", "main"], "--branch main"),
        (with_files(TWO), ["--branch", "a..b"], "no such branch name"),
        (with_files(TWO), ["--report", "/proc/nowhere/report.json"], "--report"),
        (with_files(TWO), ["--jobs", "0"], "--jobs"),
        (with_files(TWO), ["--sandbox", "hope"], "--sandbox"),
        (with_files(TWO), ["--device", "tpu"], "--device"),
        (with_files(TWO), ["--no-such-option"], "--no-such-option"),
    ],
)
def test_wrong_usage_is_one_line_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], make: Callable[[Path], Path], options: list[str], message: str
) -> None:
    root = make(tmp_path / "repo")
    assert cli.guarded(["run", "--yes", "--repo", str(root), *options]) == 2
    error = capfd.readouterr().err
    assert message in error.splitlines()[-1]
    assert "Traceback" not in error
    assert sum(line.startswith("migrate-agent:") for line in error.splitlines()) == 1
    if (root / ".git").exists() and git(root, "rev-list", "--all"):
        assert git(root, "branch", "--format=%(refname:short)") == "main"
        assert list(root.glob(".git/migrate-agent/runs/*")) == []


def test_report_follows_the_contract(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root, report = repository(tmp_path / "repo", TWO), tmp_path / "out/report.json"
    assert cli.guarded(["run", "--yes", "--no-llm", "--repo", str(root), "--report", str(report)]) == 0
    document: dict[str, Any] = json.loads(report.read_text())
    base = git(root, "rev-parse", "HEAD")
    branch = f"migrate-agent/{base[:7]}"
    assert (document["version"], document["repo"], document["base"], document["branch"]) == (1, str(root), base, branch)
    assert document["totals"] == {"verified": 2, "failed": 0, "unverified": 0, "skipped": 0, "torchax": 0}
    unit = document["units"][0]
    assert {key: unit[key] for key in ("source", "name", "target", "status", "proposer", "attempts", "llm")} == {
        "source": "a.py",
        "name": "Alpha",
        "target": "a_jax.py",
        "status": "verified",
        "proposer": "rules",
        "attempts": 1,
        "llm": {"calls": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "seconds": 0.0},
    }
    contract = ("stage", "check", "status", "measured", "limit", "detail")  # of version 1, to which keys are added
    assert {key: unit["verdicts"][1][key] for key in contract} == {
        "stage": "numeric",
        "check": "forward_fp64",
        "status": "pass",
        "measured": 1e-14,
        "limit": 1e-11,
        "detail": "scripted pass",
    }
    assert unit["cause"] == ""
    assert [row["commit"] for row in document["units"]] == git(root, "log", "--reverse", "--format=%H", f"{base}..{branch}~1").split()
    assert "2 verified" in capfd.readouterr().out
    assert "| `a.py:Alpha` | `a_jax.py` | verified | 2/2 |" in git(root, "show", f"{branch}:.migrate/report.md")
    assert git(root, "show", f"{branch}~1:b_jax.py").startswith("class Beta")
    git(root, "checkout", "-q", branch)


def test_a_fault_in_one_unit_does_not_stop_the_others(tmp_path: Path) -> None:
    files = {
        **TWO,
        "c.py": module("Fails", "script: fail"),
        "d.py": module("Holed", "script: hole"),
        "e.py": module("Bare", "script: no example"),
        "f.py": module("Crashes", "script: crash"),
        "g.py": f"from c import Fails\n{module('Needs', needs='Fails')}",
        "h.py": module("Taken"),
        "h_jax.py": "mine = 1\n",
        "i.py": module("Unjudged", "script: unjudged"),
        "j.py": f"from e import Bare\n{module('Derived', needs='Bare')}",
        "k.py": module("Inner", "script: inside"),
        "l.py": f"from k import Inner\n{module('Outer', needs='Inner')}",
        "broken.py": "import torch\ndef (",
    }
    root, report = repository(tmp_path / "repo", files), tmp_path / "report.json"
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--report", str(report)]) == 1
    document = json.loads(report.read_text())
    found = {unit["name"]: (unit["status"], unit["reason"]) for unit in document["units"]}
    assert {name: status for name, (status, _) in found.items()} == {
        "Alpha": "verified",
        "Beta": "verified",
        "Fails": "failed",
        "Holed": "unverified",
        "Bare": "unverified",
        "Crashes": "unverified",
        "Needs": "unverified",
        "Taken": "failed",
        "Unjudged": "unverified",
        "Inner": "unverified",
        "Outer": "verified",  # which holds what runs inside it only
        "Derived": "verified",  # a base that nothing can be said of alone was judged as part of it
    }
    for name, words in {
        "Fails": "numeric/forward_fp64: scripted fail",
        "Holed": "1 hole: d.py:5: asked for",
        "Bare": "no example reached it: add an [[example]]",
        "Crashes": "internal error in rewrite: RuntimeError: scripted crash",
        "Inner": "no example runs it alone, since its call is odd",
        "Needs": "needs c.py:Fails, which is failed",
        "Taken": "h_jax.py exists already",
        "Unjudged": "scripted unverified",
    }.items():
        assert words in found[name][1]
    assert document["problems"][0]["source"] == "broken.py"
    assert git(root, "show", f"{document['branch']}:h_jax.py") == "mine = 1"
    bare_unit = next(unit for unit in document["units"] if unit["name"] == "Bare")
    assert bare_unit["notes"] == ['[[example]]\nmodule = "e.py:Bare"\ninit = "width=..."\ncall = "x=..., scale=..."']


def test_module_option_takes_what_it_needs_and_no_more(tmp_path: Path) -> None:
    root, report = repository(tmp_path / "repo", {**TWO, "c.py": module("Gamma")}), tmp_path / "report.json"
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--module", f"{root}/b.py:Beta", "--report", str(report)]) == 0
    assert statuses(report) == {"Alpha": "verified", "Beta": "verified"}


def test_excluded_files_are_skipped_with_the_reason(tmp_path: Path) -> None:
    files = {**TWO, "old/c.py": module("Gamma"), "migrate.toml": '[run]\nexclude = ["old"]\nbranch = "jax"\n'}
    root, report = repository(tmp_path / "repo", files), tmp_path / "report.json"
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--report", str(report)]) == 0
    assert statuses(report)["Gamma"] == "skipped"
    assert json.loads(report.read_text())["branch"] == "jax"


def test_dirty_tree_and_detached_head_do_not_matter(tmp_path: Path) -> None:
    root, report = repository(tmp_path / "repo", TWO), tmp_path / "report.json"
    git(root, "checkout", "-q", "--detach")
    write(root, {"a.py": "this is not even python (", "loose.py": module("Loose")})
    git(root, "add", "loose.py")
    before = git(root, "status", "--porcelain")
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--report", str(report)]) == 0
    assert statuses(report) == {"Alpha": "verified", "Beta": "verified"}
    assert git(root, "status", "--porcelain") == before
    assert (root / "a.py").read_text() == "this is not even python ("


def test_a_second_run_makes_a_second_branch_with_the_same_tree(tmp_path: Path) -> None:
    root, report = repository(tmp_path / "repo", TWO), tmp_path / "report.json"
    branches = []
    for _ in range(2):
        assert cli.guarded(["run", "--yes", "--repo", str(root), "--report", str(report)]) == 0
        branches.append(json.loads(report.read_text())["branch"])
    assert branches[1] == f"{branches[0]}-2"
    assert git(root, "diff", "--stat", f"{branches[0]}~1", f"{branches[1]}~1") == ""


def test_old_runs_make_room(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", TWO)
    for _ in range(5):
        assert cli.guarded(["run", "--yes", "--repo", str(root)]) == 0
    assert len(list(root.glob(".git/migrate-agent/runs/*"))) == KEPT + 1
    assert git(root, "branch", "--list", "migrate-agent/*").count("\n") == 4


def test_a_merged_migration_can_be_run_again(tmp_path: Path) -> None:
    root, report = repository(tmp_path / "repo", TWO), tmp_path / "report.json"
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--branch", "jax"]) == 0
    git(root, "merge", "-q", "--ff-only", "jax")
    write(root, {"c.py": module("Gamma")})
    git(root, "add", "c.py")
    git(root, "commit", "-qm", "more")
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--report", str(report)]) == 0
    assert statuses(report) == {"Alpha": "verified", "Beta": "verified", "Gamma": "verified"}


def test_only_one_process_works_at_a_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path / "repo", TWO)
    with locked(root / ".git/migrate-agent"):
        assert cli.guarded(["run", "--yes", "--repo", str(root)]) == 2
    assert "another migrate-agent works on this repository" in capfd.readouterr().err


def test_nothing_to_resume(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = repository(tmp_path / "repo", TWO)
    assert cli.guarded(["resume", "--repo", str(root)]) == 2
    assert "no run was started here" in capfd.readouterr().err
    assert cli.guarded(["run", "--yes", "--repo", str(root)]) == 0
    assert cli.guarded(["resume", "--repo", str(root)]) == 2
    assert "the last run is finished" in capfd.readouterr().err


def test_a_missing_engine_leaves_with_3(tmp_path: Path, services: types.ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(kind: str, device: str) -> None:
        raise MissingError(f"sandbox {kind} cannot be used: scripted, {device}")

    services.services = lambda warn: scripted.services(open_sandbox=refuse)  # type: ignore[attr-defined]
    root = repository(tmp_path / "repo", TWO)
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--sandbox", "docker", "--device", "gpu"]) == 3
    assert "sandbox docker cannot be used: scripted, gpu" in capfd.readouterr().err
    assert list(root.glob(".git/migrate-agent/runs/*")) == []


def test_a_sandbox_that_breaks_stops_the_run_and_it_resumes(
    tmp_path: Path, services: types.ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object) -> None:
        raise SandboxUnavailable("the worker does not start: scripted")

    services.services = lambda warn: scripted.services(verify=broken)  # type: ignore[attr-defined]
    root, report = repository(tmp_path / "repo", TWO), tmp_path / "report.json"
    assert cli.guarded(["run", "--yes", "--repo", str(root), "--report", str(report)]) == 3
    assert "the worker does not start" in capfd.readouterr().err.splitlines()[-1]
    services.services = lambda warn: scripted.services()  # type: ignore[attr-defined]
    assert cli.guarded(["resume", "--repo", str(root)]) == 0
    assert statuses(report) == {"Alpha": "verified", "Beta": "verified"}


@pytest.mark.parametrize(("options", "shown"), [([], False), (["--debug"], True)])
def test_tracebacks_are_for_debug(
    tmp_path: Path, services: types.ModuleType, capfd: pytest.CaptureFixture[str], options: list[str], shown: bool
) -> None:
    def break_down(root: Path) -> None:
        raise RuntimeError("scripted")

    services.services = lambda warn: scripted.services(scan=break_down)  # type: ignore[attr-defined]
    root = repository(tmp_path / "repo", TWO)
    assert cli.guarded(["run", "--yes", "--repo", str(root), *options]) == cli.CRASH
    error = capfd.readouterr().err
    assert ("Traceback" in error) is shown
    assert "internal error: RuntimeError: scripted" in error


def test_scan_needs_no_git_and_prints_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {**TWO, "broken.py": "def ("})
    assert cli.guarded(["scan", "--repo", str(tmp_path), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["order"] == ["a.py:Alpha", "b.py:Beta"]
    assert cli.guarded(["scan", "--repo", str(tmp_path)]) == 0
    shown = capfd.readouterr().out
    assert "b.py:Beta" in shown and "broken.py" in shown


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'jax', 'flax', 'numpy', 'libcst', 'langgraph', 'pydantic', 'git', 'networkx'}"
    code = f"import sys; from migrate_agent.agent import cli; assert cli.guarded(['--help']) == 0; assert not {heavy} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "verify" in done.stdout


def test_version_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.guarded(["--version"]) == 0
    assert capfd.readouterr().out == f"migrate-agent {metadata.version('migrate-agent')}\n"


def test_every_command_can_show_a_traceback() -> None:
    group = typer.main.get_command(cli.app)
    commands = dict(vars(group)["commands"])
    commands |= vars(commands.pop("sandbox"))["commands"]
    assert [name for name, command in commands.items() if "debug" not in {option.name for option in command.params}] == []
