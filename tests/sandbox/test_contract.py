"""What every backend holds, shown by running real jobs in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from migrate_agent.sandbox import Sandbox, SandboxError, open_sandbox
from migrate_agent.sandbox.staging import prune
from migrate_agent.tests.sandbox.support import HERE, KINDS, containers, job, marked, workers_of
from migrate_agent.tools.types import Job, Limits, Side

CANARY = f"canary-{uuid.uuid4().hex}"
SIDES: tuple[Side, ...] = ("original", "candidate")


@pytest.fixture(scope="module", params=KINDS)
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "HF_TOKEN", "HTTPS_PROXY", "PYTHONPATH", "PYTHONSTARTUP"):
            patch.setenv(name, CANARY)
        opened = open_sandbox(request.param, folder=tmp_path_factory.mktemp("jobs"))
        yield opened
        opened.close()


@pytest.mark.parametrize("side", SIDES)
def test_result_files_and_log_come_back(sandbox: Sandbox, side: Side, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("text")
    run = sandbox.run(job("echo", side, inputs={"one": tmp_path / "in.txt"}, number=1.5, nothing=None))
    assert (run.status, run.error, run.traceback) == ("ok", "", "")
    assert run.result == {"arguments": {"number": 1.5, "nothing": None}, "inputs": {"one": "text"}}
    assert (run.output / "folder" / "file.txt").read_text() == "left"
    assert run.log == "for people\n"
    assert run.seconds > 0
    assert run.peak_memory_bytes > 2**20
    sandbox.release(run)
    assert not run.output.exists()


def test_folder_as_input(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "below" / "file").write_text("x")
    run = sandbox.run(job("echo", inputs={"file": tmp_path / "in" / "below" / "file", "other": tmp_path / "in" / "below" / "file"}))
    assert run.result["inputs"] == {"file": "x", "other": "x"}
    assert sandbox.run(job("overwrites", inputs={"one": tmp_path / "in" / "below" / "file"})).status == "ok"
    assert (tmp_path / "in" / "below" / "file").read_text() == "x"


def test_exception_names_the_users_line(sandbox: Sandbox) -> None:
    run = sandbox.run(job("raises"))
    line = next(number for number, text in enumerate((HERE / "entries.py").read_text().split("\n"), 1) if "raise ValueError" in text)
    assert run.status == "error"
    assert run.error == f"ValueError: first second �[31m (entries.py:{line})"
    assert run.traceback.startswith("Traceback")
    assert "child.py" not in run.traceback


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ("absent:f", "ModuleNotFoundError: No module named 'absent'"),
        ("entries:absent", "AttributeError: module 'entries' has no attribute 'absent'"),
    ],
)
def test_missing_entry_is_an_error(sandbox: Sandbox, entry: str, error: str) -> None:
    run = sandbox.run(Job("candidate", entry, HERE))
    assert (run.status, run.error) == ("error", error)


def test_syntax_error_is_placed(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    run = sandbox.run(Job("candidate", "broken:f", tmp_path))
    assert run.status == "error"
    assert run.error.startswith("SyntaxError") and run.error.endswith("(broken.py:2)")
    assert not (tmp_path / "__pycache__").exists()


@pytest.mark.parametrize(
    ("how", "status", "error"),
    [
        ("sys.exit", "error", "SystemExit: 3"),
        ("os._exit", "crash", "ended with exit status 0 and no result"),
        ("SIGSEGV", "crash", "killed by SIGSEGV"),
        ("SIGKILL", "memory", "killed by SIGKILL"),
        ("SIGTERM", "crash", "killed by SIGTERM"),
    ],
)
def test_sudden_end(sandbox: Sandbox, how: str, status: str, error: str) -> None:
    run = sandbox.run(job("leaves", how=how))
    assert run.status == status
    assert run.error.startswith(error)


@pytest.mark.parametrize("how", ["loops", "SIGSTOP"])
def test_timeout(sandbox: Sandbox, how: str) -> None:
    limits = Limits(seconds=0.5)
    run = sandbox.run(job("loops", limits=limits) if how == "loops" else job("leaves", limits=limits, how=how))
    assert (run.status, run.error) == ("timeout", "took longer than 0.5 s")
    assert ("in loops" in run.log) == (how == "loops"), "the log says where it hung"


@pytest.mark.parametrize("children", [0, 4])
def test_memory(sandbox: Sandbox, children: int) -> None:
    run = sandbox.run(job("allocates", limits=Limits(seconds=20.0, memory_bytes=2**29), children=children))
    assert (run.status, run.error) == ("memory", f"used more than {2**29} bytes of memory")
    assert run.peak_memory_bytes > 2**29


def test_endless_log_is_cut(sandbox: Sandbox) -> None:
    run = sandbox.run(job("prints"))
    assert (run.status, run.result) == ("ok", "done")
    assert len(run.log) < 2**19
    assert run.log.startswith("begin\n") and run.log.endswith("end\n") and "bytes left out" in run.log


@pytest.mark.parametrize(
    ("what", "error"),
    [("large", "ValueError: the result has"), ("set", "TypeError: Object of type set"), ("surrogate", "malformed result: no proper JSON")],
)
def test_unusable_result(sandbox: Sandbox, what: str, error: str) -> None:
    run = sandbox.run(job("returns", what=what))
    assert (run.status, run.result) == ("error", None)
    assert run.error.startswith(error)


@pytest.mark.parametrize("text", ["garbage", "[1]", '{"status": "ok"}', '{"status": "verified", "result": 1}', "[" * 100_000])
def test_forged_result(sandbox: Sandbox, text: str) -> None:
    run = sandbox.run(job("forges", text=text))
    assert (run.status, run.result) == ("error", None)
    assert run.error.startswith("malformed result")


def test_candidate_cannot_import_torch(sandbox: Sandbox) -> None:
    names = ["torch", "torch.nn", "torchvision", "torchax", "functorch", "safetensors.torch"]
    found = sandbox.run(job("imports", names=names)).result
    assert found == {**dict.fromkeys(names, "ModuleNotFoundError"), "loaded": ""}
    assert sandbox.run(job("imports", names=["jax", "flax", "optax"])).result["loaded"] == "flax,jax,optax"


def test_original_can(sandbox: Sandbox) -> None:
    assert sandbox.run(job("imports", "original", names=["torch"])).result == {"torch": "torch", "loaded": "torch"}


@pytest.mark.parametrize("side", SIDES)
def test_surroundings(sandbox: Sandbox, side: Side) -> None:
    run = sandbox.run(job("surroundings", side))
    seen = run.result
    assert CANARY not in json.dumps(seen)
    assert not {"OPENAI_API_KEY", "HTTPS_PROXY", "PYTHONPATH"} & seen["environment"].keys()
    assert (seen["environment"]["JAX_PLATFORMS"], seen["environment"]["PYTHONHASHSEED"]) == ("cpu", "0")
    assert seen["environment"]["LOGNAME"] == "sandbox", "`getpass.getuser` would look for the job's user in vain"
    job_folder = Path(seen["cwd"]).parent
    assert Path(seen["environment"]["HOME"]).parent == Path(seen["environment"]["TMPDIR"]).parent == job_folder
    copied = side == "candidate" and sandbox.name != "process"
    assert (Path(seen["path"]).name if copied else seen["path"]) == (job_folder.name if copied else str(HERE))
    assert (seen["home"], seen["stdin"], seen["main"], seen["argv"]) == ([], "", [], [""])
    assert (seen["threads"], seen["tasks"]) == (1, 1), "the worker must start no thread before it forks"
    assert seen["descriptors"] == 5, "0, 1, 2, the result and the listing's own"


@pytest.mark.parametrize(("side", "library"), [("original", "torch"), ("candidate", "jax")])
def test_nothing_leaks_into_the_next_job(sandbox: Sandbox, side: Side, library: str) -> None:
    fresh = job("soiled", side, library=library)
    assert sandbox.run(fresh).result == []
    run = sandbox.run(job("soils", side, library=library))
    assert (run.status, run.error) == ("ok", "")
    assert sandbox.run(fresh).result == []


def test_leaks_would_be_seen(sandbox: Sandbox) -> None:
    """Both in one job: without this, the leaks could be a blind spot of the test."""
    found = sandbox.run(job("soils_and_looks", library="jax")).result
    assert len(found) == 19, found


@pytest.mark.parametrize("side", SIDES)
def test_jobs_draw_the_same_numbers(sandbox: Sandbox, side: Side) -> None:
    assert sandbox.run(job("draws", side)).result == sandbox.run(job("draws", side)).result


def test_jobs_at_the_same_time(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda number: sandbox.run(job("echo", SIDES[number % 2], number=number)), range(8)))
    assert [run.result["arguments"]["number"] for run in runs] == list(range(8))
    assert len({run.output for run in runs}) == 8


def test_one_worker_serves_the_candidates_of_a_run(sandbox: Sandbox, tmp_path: Path) -> None:
    assert sandbox.run(job("echo")).status == "ok"
    before = {worker.pid for worker in workers_of(sandbox)}
    for name in ("one", "two"):
        root = tmp_path / name
        root.mkdir(mode=0o700)
        (root / "answers.py").write_text(f"def f(arguments, inputs, output):\n    return {name!r}\n", encoding="utf-8")
        assert sandbox.run(Job("candidate", "answers:f", root)).result == name
    assert {worker.pid for worker in workers_of(sandbox)} <= before, "no other was started"


def test_candidates_at_the_same_time_are_apart(sandbox: Sandbox) -> None:
    """What each leaves lies where only its own worker sees it; a plain process hides nothing."""
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda name: sandbox.run(job("meets", name=name, seconds=1.5)), ("one", "two")))
    assert [run.status for run in runs] == ["ok", "ok"]
    assert [run.result for run in runs] == ([["two"], ["one"]] if sandbox.name == "process" else [[], []])


def test_code_that_is_too_large_to_copy(sandbox: Sandbox, tmp_path: Path) -> None:
    """It is shown where it lies. (So is code around the folder of the sandbox: see the backends' own tests.)"""
    (tmp_path / "answers.py").write_text("def f(arguments, inputs, output):\n    return 1\n", encoding="utf-8")
    os.truncate(os.open(tmp_path / "large", os.O_CREAT | os.O_RDWR), 2**26)
    assert sandbox.run(Job("candidate", "answers:f", tmp_path)).result == 1


@pytest.mark.parametrize("daemon", [False, True])
def test_no_process_outlives_its_job(sandbox: Sandbox, daemon: bool) -> None:
    marker = uuid.uuid4().hex
    run = sandbox.run(job("starts", count=3, marker=marker, daemon=daemon))
    assert (run.status, run.result) == ("ok", "started")
    assert marked(marker) == []


def test_too_many_processes(sandbox: Sandbox) -> None:
    marker = uuid.uuid4().hex
    run = sandbox.run(job("starts", limits=Limits(seconds=30.0, processes=16), count=48, marker=marker, daemon=False, seconds=100.0))
    assert (run.status, run.error) == ("crash", "started more than 16 processes")
    assert marked(marker) == []


@pytest.mark.parametrize(("generations", "name"), [(1, "SIGKILL"), (2, "SIGKILL"), (2, "SIGTERM")])
def test_job_cannot_kill_what_runs_it(sandbox: Sandbox, generations: int, name: str) -> None:
    run = sandbox.run(job("ends_worker", limits=Limits(seconds=20.0), generations=generations, signal=name))
    assert run.error.startswith("AccessDenied"), "its seccomp filter forbids it"
    assert sandbox.run(job("echo")).status == "ok"


def test_worker_that_died_is_replaced(sandbox: Sandbox) -> None:
    assert sandbox.run(job("echo")).status == "ok"
    workers = workers_of(sandbox)
    assert workers
    below = [process for worker in workers for process in worker.children(recursive=True)]
    for worker in workers:
        worker.kill()
    assert psutil.wait_procs(below, timeout=60)[1] == []
    assert sandbox.run(job("echo")).status == "ok"


@pytest.mark.parametrize(
    ("what", "status", "error"),
    [
        ("symlink", "error", "'odd' in the output folder is no plain file"),
        ("hardlink", "error", "in the output folder is no plain file"),
        ("fifo", "error", "'odd' in the output folder is no plain file"),
        ("socket", "error", "'odd' in the output folder is no plain file"),
        ("replaced", "error", "the output folder was replaced"),
        ("removed", "error", "the output folder cannot be read"),
        ("deep", "error", "the output folder"),
        ("large", "disk", "OSError: [Errno 27] File too large"),
        ("many", "error", "the output folder holds more than"),
        ("closed", "ok", ""),
    ],
)
def test_output_folder(sandbox: Sandbox, what: str, status: str, error: str) -> None:
    run = sandbox.run(job("outputs", limits=Limits(seconds=20.0, file_bytes=2**20), what=what))
    if what in ("many", "deep") and run.status == "disk":  # the keeper saw it before the job ended
        error = "wrote more than 1048576 bytes or too many files"
    else:
        assert run.status == status
    assert error in run.error
    assert [path.name for path in run.output.iterdir()] == (["odd"] if what in ("closed", "large") else [])


@pytest.mark.parametrize("kind", KINDS)
def test_close_leaves_nothing(kind: str, tmp_path: Path) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    sandbox = open_sandbox(kind, folder=tmp_path)
    marker = uuid.uuid4().hex
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sandbox.run, job("starts", count=1, marker=marker, daemon=False, seconds=100.0))
        _until_marked(marker, lambda seconds: bool(wait([running], seconds).done))
        sandbox.close()
        assert running.result().status == "lost"
    assert marked(marker) == []
    assert containers(tmp_path) == []
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before
    assert list(tmp_path.iterdir()) == []
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(job("echo"))


HOST = """
import sys
from pathlib import Path
from migrate_agent.sandbox import open_sandbox
from migrate_agent.tools.types import Job
sandbox = open_sandbox(sys.argv[1], folder=Path(sys.argv[2]))
arguments = {"count": 1, "marker": sys.argv[4], "daemon": False, "seconds": 100.0}
sandbox.run(Job("candidate", "entries:starts", Path(sys.argv[3]), arguments))
"""


@pytest.mark.slow  # the lane for Docker runs it
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_outlives_the_host(kind: str, name: str, tmp_path: Path) -> None:
    marker = uuid.uuid4().hex
    with subprocess.Popen([sys.executable, "-c", HOST, kind, str(tmp_path), str(HERE), f"of {marker}"], stderr=subprocess.PIPE) as host:
        started = _until_marked(f"of {marker}", lambda seconds: bool(psutil.wait_procs([psutil.Process(host.pid)], seconds)[0]))
        os.kill(host.pid, getattr(signal, name))
        host.communicate(timeout=60)
    gone, alive = psutil.wait_procs(started, timeout=60)
    assert (bool(gone), alive) == (True, [])
    assert containers(tmp_path) == []
    prune(tmp_path)
    assert list(tmp_path.iterdir()) == []


def _until_marked(marker: str, ended: Callable[[float], bool]) -> list[Any]:
    """Wait until a program with this marker runs. `ended(seconds)` waits that long, or until what starts it has ended."""
    for _ in range(600):
        if found := [process for process in marked(marker) if "-S" in process.cmdline()]:
            return found
        assert not ended(0.1), "the host ended before the job started"
    raise AssertionError("the job never started its program")
