"""Which units run their original through torchax, and what is said where torchax does not work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from migrate_agent.agent.config.errors import MissingError, UsageError
from migrate_agent.agent.loop import run, torchax
from migrate_agent.agent.loop.report import totals_line
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import module, repository
from migrate_agent.tools import extras


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    torchax.import_error.cache_clear()
    yield
    torchax.import_error.cache_clear()


def test_line_says_whether_the_installed_torchax_works() -> None:
    there = extras.installed("torchax")
    works = there and not subprocess.run([sys.executable, "-c", "import torchax"], capture_output=True, check=False).returncode
    try:
        torchax.require_torchax("--fallback torchax")
    except MissingError as error:
        line, status = error.message, error.exit_status
        assert (works, status, "--fallback torchax" in line, "\n" in line) == (False, 3, True, False)
        assert ("pip install 'migrate-agent[torchax]'" if not there else "pip install torchax==0.0.4") in line
    else:
        assert works


def test_line_names_the_versions_that_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torchax").mkdir()
    (tmp_path / "torchax" / "__init__.py").write_text("raise AttributeError(\"'aten.prod' has no overload name 'dim_Dimname'\")\n")
    (tmp_path / "torchax-0.0.13.dist-info").mkdir()
    (tmp_path / "torchax-0.0.13.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torchax\nVersion: 0.0.13\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(
        MissingError, match=r"^torchax 0\.0\.13 does not work with torch .*dim_Dimname.*torchax 0\.0\.4 works with torch 2\.13"
    ) as raised:
        torchax.require_torchax("--fallback torchax")
    assert "\n" not in raised.value.message


ASKED = '[[unit]]\nmodule = "a.py:A"\nstrategy = "torchax"\n'


@pytest.mark.parametrize(
    ("script", "fallback", "config", "strategies", "line"),
    [
        ("hole", "", "", ["rewrite", "rewrite"], "1 verified, 1 unverified"),
        ("hole", "", '[run]\nfallback = "torchax"\n', ["torchax", "rewrite"], "1 verified, 1 through torchax"),
        ("fail", "torchax", "", ["torchax", "rewrite"], "1 verified, 1 failed"),
        ("none", "", ASKED, ["torchax", "rewrite"], "1 verified, 1 through torchax"),
    ],
)
def test_units_that_are_not_rewritten_are_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, fallback: str, config: str, strategies: list[str], line: str
) -> None:
    monkeypatch.setattr(run, "require_torchax", lambda purpose: None)
    files = {"a.py": module("A", f"script: {script}"), "b.py": module("B"), "migrate.toml": config}
    root = repository(tmp_path / "repo", files)
    options = run.Options(llm=False, fallback="torchax" if fallback else "")
    result = run.start(root, options, scripted.services(), Progress(Console(quiet=True)), lambda context, state: "accept")
    assert ([unit.strategy for unit in result.units], totals_line(result.units)) == (strategies, line)
    if script == "fail":
        assert "; through torchax: " in result.units[0].reason


def test_unit_that_has_no_wrapper_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "require_torchax", lambda purpose: None)
    root = repository(tmp_path / "repo", {"a.py": module("A").replace("x, *, scale", "x, /"), "migrate.toml": ASKED})
    result = run.start(root, run.Options(llm=False), scripted.services(), Progress(Console(quiet=True)), lambda context, state: "accept")
    (unit,) = result.units
    assert (unit.status, unit.reason) == ("unverified", "it cannot run through torchax: the parameters of A.forward cannot be passed on")


def test_unit_of_the_configuration_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "require_torchax", lambda purpose: None)
    root = repository(tmp_path / "repo", {"a.py": module("A"), "migrate.toml": ASKED.replace(":A", ":Other")})
    with pytest.raises(UsageError, match=r"did you mean a\.py:A"):
        run.start(root, run.Options(llm=False), scripted.services(), Progress(Console(quiet=True)), lambda context, state: "accept")
