"""How a backend is chosen, and the parts that need no running worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import migrate_agent.sandbox as package
from migrate_agent.sandbox import SandboxError, SandboxUnavailable, open_sandbox
from migrate_agent.sandbox.outcome import genuine, outcome, printable
from migrate_agent.sandbox.staging import DEEPEST, Base, prune, unfit
from migrate_agent.tests.sandbox.support import REASONS, job
from migrate_agent.tools.types import Limits

REPORT = {"end": "exit", "wait_status": 0, "result": '{"status": "ok", "result": [1]}', "log": "", "seconds": 1.0, "peak_memory_bytes": 2}


def test_importing_the_package_is_light() -> None:
    code = "import sys, migrate_agent.sandbox; print(sorted({'torch', 'jax', 'psutil', 'numpy', 'concurrent'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_unknown_kind() -> None:
    with pytest.raises(SandboxError, match="unknown sandbox 'jail': choose from auto, docker, bubblewrap, process"):
        open_sandbox("jail")


def test_demanded_kind_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxUnavailable, match="bwrap is not installed"):
        open_sandbox("bubblewrap")


def test_auto_falls_back_to_the_process_with_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    said: list[str] = []
    sandbox = open_sandbox("auto", folder=tmp_path, warn=said.append)
    sandbox.close()
    assert (sandbox.name, said) == ("process", [package.UNPROTECTED])


def test_auto_prefers_what_protects(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    monkeypatch.setattr("migrate_agent.sandbox.bubblewrap.missing", lambda: "")
    said: list[str] = []
    sandbox = open_sandbox("auto", folder=tmp_path, warn=said.append)
    sandbox.close()
    assert (sandbox.name, said) == ("bubblewrap", [])


@pytest.mark.parametrize("kind", ["auto", "bubblewrap", "process"])
def test_a_gpu_that_is_not_there(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr("migrate_agent.sandbox.view.GPUS", ())
    monkeypatch.setattr("migrate_agent.sandbox.bubblewrap.missing", lambda: "")
    with pytest.raises(SandboxUnavailable, match="no GPU on this machine"):
        open_sandbox(kind, device="gpu")


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({}, "ok", ""),
        ({"end": "timeout"}, "timeout", "took longer than 120 s"),
        ({"end": "memory"}, "memory", "used more than 6442450944 bytes of memory"),
        ({"end": "processes"}, "crash", "started more than 256 processes"),
        ({"end": "disk"}, "disk", "wrote more than 2147483648 bytes or too many files"),
        ({"wait_status": 256}, "crash", "ended with exit status 1 and no result"),
        ({"wait_status": 11}, "crash", "killed by SIGSEGV"),
        ({"wait_status": 9}, "memory", "killed by SIGKILL (by the kernel for want of memory, or by the code itself)"),
        ({"wait_status": 24}, "timeout", "killed by SIGXCPU"),
        ({"wait_status": 25}, "disk", "killed by SIGXFSZ"),
        ({"wait_status": 40}, "crash", "killed by signal 40"),
        ({"wait_status": None}, "crash", "ended without a trace"),
        ({"result": ""}, "crash", "ended with exit status 0 and no result"),
        ({"result": "{"}, "error", "malformed result: no proper JSON: JSONDecodeError"),
        ({"result": "1" * 5000}, "error", "malformed result: no proper JSON: ValueError"),
        ({"result": '{"status": "ok", "result": 1, "more": 2}'}, "error", "malformed result: not of the expected form"),
        ({"result": '{"status": "error", "error": 1, "traceback": ""}'}, "error", "malformed result: not of the expected form"),
        ({"result": '{"status": "error", "error": "a\\nb", "traceback": ""}'}, "error", "a b"),
        ({"result": '{"status": "memory", "error": "MemoryError: ", "traceback": ""}'}, "memory", "MemoryError: "),
        ({"result": '{"status": "disk", "error": "OSError: ", "traceback": ""}'}, "disk", "OSError: "),
    ],
)
def test_outcome(change: dict[str, Any], status: str, error: str) -> None:
    fields = outcome({**REPORT, **change}, Limits())
    assert (fields["status"], fields.get("error", "")) == (status, error)
    assert fields.get("result") == ([1] if status == "ok" else None)


@pytest.mark.parametrize(
    ("change", "whole"),
    [
        ({}, True),
        ({"wait_status": None}, True),
        ({"nonce": "other"}, False),
        ({"nonce": "ö"}, False),
        ({"nonce": None}, False),
        ({"end": 1}, False),
        ({"result": {"status": "ok"}}, False),
        ({"more": 1}, False),
    ],
)
def test_reports_are_whole_and_of_the_right_keeper(change: dict[str, Any], whole: bool) -> None:
    report = {**REPORT, "nonce": "nonce"}
    assert genuine({**report, **change}, "nonce") == whole
    assert not genuine({key: value for key, value in report.items() if key != "log"}, "nonce")
    assert not genuine([report], "nonce")


def test_arguments_of_any_size_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrate_agent.sandbox.process.REQUEST_BYTES", 1000)
    sandbox = open_sandbox("process", folder=tmp_path)
    with pytest.raises(ValueError, match="hand them over as inputs"):
        sandbox.run(job("echo", text="x" * 1000))
    sandbox.close()
    assert list(tmp_path.iterdir()) == []


def test_printable() -> None:
    assert printable("a\x1b[2J\r\nb\t\x00") == "a�[2J� b �"
    assert printable("é\n\tx", lines=True) == "é\n\tx"


def test_prune_leaves_what_is_in_use(tmp_path: Path) -> None:
    used = Base(tmp_path)
    left = Base(tmp_path)
    os.close(left._lock)  # as the kernel does when the process dies
    assert prune(tmp_path) == [left.path]
    assert list(tmp_path.iterdir()) == [used.path]
    used.close()
    assert list(tmp_path.iterdir()) == []


def test_unfit_counts_bytes_and_accepts_plain_files(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"x" * 1000)
    assert unfit(tmp_path, 2**20) == ""
    assert "more than 999 bytes" in unfit(tmp_path / "below", 999)
    (tmp_path / "/".join("d" * DEEPEST)).mkdir(parents=True)
    assert unfit(tmp_path, 2**20) == ""
    (tmp_path / "/".join("d" * (DEEPEST + 1))).mkdir()
    assert "nested deeper than 64" in unfit(tmp_path, 2**20)


def test_required_backends_work() -> None:
    """Where the environment demands backends (continuous integration does), their tests may not be skipped."""
    required = [kind for kind in os.environ.get("MIGRATE_AGENT_REQUIRE", "").split(",") if kind not in ("", "prism", "tpu")]
    assert {kind: REASONS[kind] for kind in required if REASONS[kind]} == {}
