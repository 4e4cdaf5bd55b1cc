"""What bubblewrap holds beyond the plain process."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.sandbox import Sandbox, open_sandbox
from migrate_agent.sandbox.bubblewrap import BubblewrapSandbox
from migrate_agent.tests.sandbox.entries import ESCAPES
from migrate_agent.tests.sandbox.support import HERE, REASONS, job
from migrate_agent.tools.types import Job, Side

pytestmark = pytest.mark.skipif(bool(REASONS["bubblewrap"]), reason=f"bubblewrap: {REASONS['bubblewrap']}")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "canary-in-the-environment")
        opened = open_sandbox("bubblewrap", folder=tmp_path_factory.mktemp("jobs"))
        yield opened
        opened.close()


@pytest.mark.parametrize("side", ["original", "candidate"])
def test_no_way_out(sandbox: Sandbox, side: Side, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(HERE / "entries.py", root / "entries.py")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        places = {"secret": str(tmp_path / "secret"), "root": str(root)}
        arguments = {**places, "port": listener.getsockname()[1], "pid": os.getpid(), "canary": "canary-in-the-environment"}
        run = sandbox.run(Job(side, "entries:reaches", root, arguments))
    reached = {name: what for name, what in run.result.items() if what != "no"}
    if side == "original":
        assert reached.pop("torch on disk") == "True"
    assert run.result.keys() == ESCAPES.keys()
    assert reached == {}


def test_a_job_does_not_see_outputs_of_earlier_ones(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "looks.py").write_text(
        "import os\n"
        "def leave(arguments, inputs, output):\n"
        "    (output / 'file').write_text('x')\n"
        "def look(arguments, inputs, output):\n"
        "    return sorted(os.listdir(output.parents[1]))\n"
    )
    first = sandbox.run(Job("candidate", "looks:leave", tmp_path))
    second = sandbox.run(Job("candidate", "looks:look", tmp_path))
    assert (first.output / "file").read_text() == "x"
    assert len(second.result) == 1
    assert first.output.name not in second.result


def test_jobs_below_the_shared_memory_keep_their_files_and_share_none(tmp_path: Path) -> None:
    (tmp_path / "looks.py").write_text(
        "import os\n"
        "def leave(arguments, inputs, output):\n"
        "    (output / 'file').write_text('x')\n"
        "    for place in ('/dev/shm', arguments['folder']):\n"
        "        open(place + '/planted', 'w').close()\n"
        "def look(arguments, inputs, output):\n"
        "    return [os.path.exists(place + '/planted') for place in ('/dev/shm', arguments['folder'])]\n"
    )
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, BubblewrapSandbox(folder=Path(folder)) as sandbox:
        first = sandbox.run(Job("candidate", "looks:leave", tmp_path, {"folder": folder}))
        second = sandbox.run(Job("candidate", "looks:look", tmp_path, {"folder": folder}))
        assert first.status == "ok", first.error
        assert (first.output / "file").read_text() == "x"
        assert second.result == [False, False]


def test_workers_beyond_the_limit_are_ended(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("migrate_agent.sandbox.process.MAX_WORKERS", 1)
    monkeypatch.setattr("migrate_agent.sandbox.process.small", lambda root: False)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(HERE / "entries.py", tmp_path / name / "entries.py")
        run = sandbox.run(Job("candidate", "entries:echo", tmp_path / name))
        assert run.status == "ok"
    assert sandbox.run(job("echo")).status == "ok"
    assert isinstance(sandbox, BubblewrapSandbox) and len(sandbox._zygotes) == 1


def test_gpus_are_passed_through_where_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine of ours has one: a harmless device that bubblewrap does not bring by itself stands in for it."""
    device = "/dev/fuse" if Path("/dev/fuse").exists() else "/dev/full"
    monkeypatch.setattr("migrate_agent.sandbox.view.GPUS", (device,))
    (tmp_path / "looks.py").write_text(
        "import os\nimport stat\n"
        "def look(arguments, inputs, output):\n"
        f"    return [os.path.exists({device!r}) and stat.S_ISCHR(os.stat({device!r}).st_mode), os.environ['JAX_PLATFORMS']]\n"
    )
    opened = open_sandbox("bubblewrap", folder=tmp_path, device="gpu")
    found = opened.run(Job("candidate", "looks:look", tmp_path)).result
    opened.close()
    assert found == [True, "cuda,cpu"]
