"""Keys of the user reach no file: whole runs with a canary in every variable that names a key, all files searched afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate_agent.agent.config.errors import MissingError
from migrate_agent.agent.config.secrets import HIDDEN, redacted, secrets
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.run import Options, start
from migrate_agent.agent.model.interface import Proposal, Request
from migrate_agent.agent.model.ledger import Entry, Ledger
from migrate_agent.agent.model.wire import Ask, Message, Reply
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.state import RunState
from migrate_agent.evals.bench import faults
from migrate_agent.tests.agent import scripted
from migrate_agent.tests.agent.repositories import git, module, repository
from migrate_agent.tests.sandbox.support import REASONS
from migrate_agent.tools.types import Usage

CANARY = "sk-canary-51f0c7a9d2e84b63"
VARIABLES = ("OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "WANDB_API_KEY", "DB_PASSWORD")
ENDPOINT = f"http://user:{CANARY}@127.0.0.1:9/v1"
CONTAINING = [pytest.param(kind, marks=pytest.mark.skipif(bool(REASONS[kind]), reason=REASONS[kind])) for kind in ("docker", "bubblewrap")]


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"OPENAI_API_KEY": CANARY, "OTHER": CANARY[::-1]}, (CANARY,)),
        ({"hf_token": CANARY}, (CANARY,)),
        ({"PROXY": ENDPOINT}, (f"user:{CANARY}", CANARY)),
        ({"A_KEY": "short", "B_KEY": "/home/user/of/a/key", "C_KEY": "a sentence of words", "KEYBOARD": CANARY}, ()),
        ({"A_KEY": "a" * 12, "B_KEY": "a" * 14}, ("a" * 14, "a" * 12)),
    ],
)
def test_what_counts_as_a_key(environment: dict[str, str], found: tuple[str, ...]) -> None:
    assert secrets(environment) == found


def test_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    assert redacted(f"wrong key {CANARY}!") == f"wrong key {HIDDEN}!"
    assert CANARY not in str(MissingError(f"wrong key {CANARY}"))


def holding(folder: Path, text: str) -> list[str]:
    """Every file below the folder that holds the text, plain, or in a git object."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            plain = zlib.decompress(data) if path.parent.parent.name == "objects" and len(path.name) == 38 else b""
            found += [str(path.relative_to(folder))] if text.encode() in data + plain else []
    return found


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"a.py": f"# {CANARY}\n"})
    (tmp_path / "repo" / "a.py").unlink()
    assert len(holding(root, CANARY)) == 1, "the git object"


class Repeats:
    """A model that says the key in every answer, or in the error that a server would give."""

    def __init__(self, fails: bool) -> None:
        self._fails = fails

    def fill(self, request: Request) -> Proposal:
        """A text with the key in it."""
        if self._fails:
            raise MissingError(f"the endpoint refuses the key {CANARY}")
        return Proposal({request.unit.id: f"class {request.unit.name}:\n    key = '{CANARY}'\n"}, Usage(1, 2, 3))

    repair = fill


def never(context: Context, state: RunState) -> str:
    raise AssertionError("no question may be asked")


@pytest.mark.parametrize("fails", [False, True])
def test_a_key_that_a_model_repeats_is_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    root = repository(tmp_path / "repo", {"a.py": module("A", "script: hole"), "b.py": module("B", "script: fail")})
    console = Console(file=(tmp_path / "said").open("w", encoding="utf-8"), width=400)
    options = Options(report=tmp_path / "report.json", jobs=2)
    try:
        start(root, options, scripted.services(model=Repeats(fails)), Progress(console), never)
    except MissingError as error:
        assert fails and HIDDEN in error.message
    else:
        assert not fails
        assert HIDDEN in git(root, "show", "migrate-agent/" + git(root, "rev-parse", "--short=7", "HEAD") + ":a_jax.py")
    console.file.close()
    assert list(root.glob(".git/migrate-agent/runs/*/checkpoints.sqlite"))
    assert holding(tmp_path, CANARY) == []


def test_no_trajectory_holds_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", ENDPOINT)
    ask = Ask(ENDPOINT, "model", (Message("user", f"what is {CANARY}"),), 10)
    Ledger(tmp_path / "trajectory.jsonl").add(Entry(ask.key, "a.py:A", "fill", ask, Reply(f"it is {CANARY}"), 0.0))
    assert (tmp_path / "trajectory.jsonl").read_text().count(HIDDEN) == 3
    assert holding(tmp_path, CANARY) == []


LEAKS = '''"""Says all that it can see, wherever it is heard."""
import glob
import os
import sys

import torch
from torch import nn


def seen():
    texts = [str(dict(os.environ))]
    for path in [*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline")]:
        try:
            with open(path, errors="replace") as file:
                texts.append(file.read().replace(chr(0), " "))
        except OSError:
            continue
    return " ".join(texts)


print(seen())
sys.stderr.write(seen())


class Raises(nn.Module):
    """Says it in an error."""

    def __init__(self, width: int):
        super().__init__()
        raise RuntimeError(seen())


class Keeps(nn.Module):
    """Says it in a default and a name."""

    def __init__(self, width: int, text=seen()):
        super().__init__()
        self.register_buffer("b", torch.zeros(len(text)))
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        print(seen())
        return self.linear(x)
'''
QUIET = '''import torch
from torch import nn


class A(nn.Module):
    """A layer."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x))
'''
EXAMPLE = '[[example]]\nmodule = "{0}"\ninit = "4"\ncall = "torch.randn(2, 4)"\n'
NAMES = ("leaks.py:Raises", "leaks.py:Keeps", "a.py:A")
REPOSITORY = {
    "leaks.py": LEAKS,
    "a.py": QUIET,
    "migrate.toml": "\n".join(EXAMPLE.format(name) for name in NAMES),
}
COMMAND = [sys.executable, "-c", "from migrate_agent.agent.cli import main; main()"]


def mounts(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines() if str(folder) in line]


def left(temporary: Path) -> dict[str, list[Any]]:
    """What a run whose temporary folder this was has left."""
    return {
        "processes": list(faults.marked(temporary)),
        "containers": [container.name for container in faults.containers(temporary)],
        "mounts": mounts(temporary),
        "files": list(temporary.iterdir()),
    }


NOTHING: dict[str, list[Any]] = {"processes": [], "containers": [], "mounts": [], "files": []}


def _until_at_work(process: subprocess.Popen[str], temporary: Path) -> None:
    """Wait until a candidate runs."""
    until = time.monotonic() + 240
    while not list(temporary.glob("migrate-agent-sandbox-*/candidate-*/*-*/output")):
        assert time.monotonic() < until and process.poll() is None, "it ended before a candidate ran"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTAINING)
def test_a_run_that_is_stopped_and_resumed_leaves_nothing_and_tells_no_key(tmp_path: Path, kind: str) -> None:
    """Stopped while candidates are at work; in Docker taken up to the end, too."""
    root, temporary = repository(tmp_path / "repo", REPOSITORY), tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, **dict.fromkeys(VARIABLES, CANARY), "OPENAI_BASE_URL": ENDPOINT, "TMPDIR": str(temporary)}
    run = ["run", "--yes", "--no-llm", "--jobs", "2", "--sandbox", kind, "--report", str(tmp_path / "report.json")]
    whole = kind == "docker"
    steps = [(run, signal.SIGTERM, 143), (["resume"], None, 1)] if whole else [(run, signal.SIGINT, 130)]
    for arguments, number, status in steps:
        with (
            (tmp_path / f"said-{status}").open("w") as said,
            subprocess.Popen([*COMMAND, *arguments, "--repo", str(root)], env=environment, stdout=said, stderr=said, text=True) as process,
        ):
            if number:
                _until_at_work(process, temporary)
                process.send_signal(number)
            process.wait(240)
        said_text = (tmp_path / f"said-{status}").read_text()
        assert process.returncode == status, said_text
        assert "Traceback" not in said_text
        assert left(temporary) == NOTHING
    report = (tmp_path / "report.json").read_text()
    assert not whole or (report.count('"verified"') >= 1 and "RuntimeError" in report), report
    assert holding(tmp_path, CANARY) == []
