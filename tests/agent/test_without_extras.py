"""The command line where extras are not installed, and what it loads before a command needs it.

The packages are installed here: each test starts a process in which a finder, first in `sys.meta_path`, says of them that they are not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from migrate_agent.tests.agent.repositories import module, repository
from migrate_agent.tools.extras import MODULES

HEAVY = "torch jax flax langgraph openai tenacity docker github gitlab libtpu opentelemetry.sdk".split()
"""What takes long to import, or belongs to an extra."""

SIMULATED = """
import json, sys
refused, arguments = map(json.loads, sys.argv[1:])

class Absent:
    def find_spec(self, name, path=None, target=None):
        if any(name == module or name.startswith(module + ".") for module in refused):
            raise ModuleNotFoundError(f"No module named {name!r} (simulated)", name=name)

sys.meta_path.insert(0, Absent())
from migrate_agent.agent import cli
sys.exit(cli.guarded(arguments))
"""
"""Runs a command line where these modules are absent (simulated)."""

ABSENT = {extra: [name for name in names if name != "tenacity"] for extra, names in MODULES.items()}
"""Extra → what is absent in the base installation. LangGraph brings tenacity there."""

LOADED = """
import json, sys
from migrate_agent.agent import cli
status = cli.guarded(json.loads(sys.argv[1]))
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(status)
"""


def without(modules: Sequence[str], arguments: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process in which these modules are absent (simulated)."""
    command = [sys.executable, "-c", SIMULATED, json.dumps(modules), json.dumps(arguments)]
    known = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "OPENAI_", "MIGRATE_AGENT_"))}
    return subprocess.run(command, env={**known, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return repository(tmp_path_factory.mktemp("of-a-user") / "repo", {"a.py": module("Alpha")})


BASE = ["--no-llm", "--yes", "--sandbox", "process"]


@pytest.mark.parametrize(
    ("extra", "arguments", "environment", "purpose"),
    [
        ("docker", ["run", "--no-llm", "--yes", "--sandbox", "docker"], {}, "--sandbox docker"),
        ("docker", ["verify", "a.py:Alpha", "--against", "a.py", "--sandbox", "docker"], {}, "--sandbox docker"),
        ("docker", ["sandbox", "build"], {}, "--sandbox docker"),
        ("forges", ["pr"], {}, "pull requests"),
        ("forges", ["run", *BASE, "--pr"], {}, "pull requests"),
        ("model", ["run", "--yes", "--sandbox", "process", "--model", "x", "--base-url", "http://localhost:1"], {}, "--model"),
        ("model", ["run", "--yes", "--sandbox", "process"], {"MIGRATE_AGENT_MODEL": "x"}, "--model"),
        ("tpu", ["tpu", "a.py:Alpha", "--topology", "v5e:1x1", "--sandbox", "process"], {}, "`migrate-agent tpu`"),
        ("trace", ["run", *BASE], {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ],
)
def test_missing_extra_is_one_line(repo: Path, extra: str, arguments: list[str], environment: dict[str, str], purpose: str) -> None:
    place = [] if arguments[0] == "sandbox" else ["--repo", str(repo)]
    done = without(ABSENT[extra], [*arguments, *place], **environment)
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("migrate-agent: ")
    assert f"migrate-agent[{extra}] is needed for {purpose}: pip install 'migrate-agent[{extra}]'" in line


def test_auto_goes_on_where_the_docker_package_is_absent() -> None:
    done = without(ABSENT["docker"], ["sandbox", "check"])
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, "")
    assert "pip install 'migrate-agent[docker]'" in lines["docker"]
    assert lines["process"] == "works"
    assert lines["auto"] in ("bubblewrap", "process")


def test_prune_needs_no_docker(tmp_path: Path) -> None:
    done = without(ABSENT["docker"], ["sandbox", "prune", "--folder", str(tmp_path)])
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing was left behind\n", "")


@pytest.mark.parametrize(
    ("absent", "reason"),
    [
        ("migrate_agent.evals", "are in a checkout of this project, not in the package"),
        ("expecttest", "need expecttest: pip install -e '.[dev]'"),
    ],
)
def test_suites_say_what_they_need(absent: str, reason: str, tmp_path: Path) -> None:
    done = without([absent], ["eval", "--suite", "modules", "--filter", "Linear", "--output", str(tmp_path)])
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"migrate-agent: the suites {reason}")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"], ["scan"], ["pr", "--help"], ["sandbox", "check"]])
def test_start_up_loads_no_heavy_package(repo: Path, arguments: list[str]) -> None:
    place = ["--repo", str(repo)] if arguments == ["scan"] else []
    command = [sys.executable, "-c", LOADED, json.dumps([*arguments, *place])]
    environment = {**os.environ, "DOCKER_HOST": "unix:///nonexistent"}  # with an engine, its client is needed
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(set(HEAVY) & set(json.loads(done.stderr.splitlines()[-1]))) == []


@pytest.mark.slow
def test_run_verifies_where_all_extras_are_absent(repo: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = without(list(chain.from_iterable(ABSENT.values())), ["run", *BASE, "--repo", str(repo), "--report", str(report)])
    assert done.returncode == 0, done.stderr
    assert [unit["status"] for unit in json.loads(report.read_text())["units"]] == ["verified"]
