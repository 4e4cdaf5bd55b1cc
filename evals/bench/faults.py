"""Jobs in a row while things break: `python -m migrate_agent.evals.bench.faults [--backend KIND] [--jobs N] [--restart-engine]`.

Every job must end with the right result or with a clear word on why there is none; none may be lost, and nothing may be left behind.
Faults, by turns: the worker is killed, the container is killed, the output folder's disk is full (root only: a small file system is mounted),
and with `--restart-engine` (root only) the Docker engine that serves this user is ended and started again with its own command line.
Exit status 1 where a job was wrong or lost, or something was left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from migrate_agent.evals.bench.measure import report
from migrate_agent.sandbox import Sandbox, SandboxUnavailable, engine, missing, open_sandbox
from migrate_agent.sandbox.child import TOKEN
from migrate_agent.tools.types import Job, Limits, Run

CODE = """
import time

def square(arguments, inputs, output):
    time.sleep(arguments["seconds"])
    number = int(inputs["number"].read_text())
    if arguments["fill"]:
        (output / "filling").write_bytes(b"x" * 2**25)
    (output / "answer").write_text(str(number**2))
    return number**2
"""
DELAY, JOB_SECONDS = 0.15, 0.4
"""The fault comes this long after the job was handed over, which lasts that long."""
DISK = "16m"
LIMITS = Limits(seconds=60.0, file_bytes=2**27)


class Faults:
    """What can break, for one sandbox."""

    def __init__(self, sandbox: Sandbox, base: Path, restart: bool) -> None:
        self._sandbox, self._base = sandbox, base
        docker = sandbox.name == "docker"
        self.names = [
            "worker",
            *(["container"] if docker else []),
            *(["disk"] if os.getuid() == 0 else []),
            *(["engine"] if restart and docker else []),
        ]

    def inject(self, name: str) -> None:
        """Break it. A full disk is the job's own doing."""
        faults: dict[str, Callable[[], object]] = {"worker": self._worker, "container": self._container, "engine": restart_engine}
        faults.get(name, lambda: None)()

    def _worker(self) -> None:
        for process in marked(self._base):
            with contextlib.suppress(psutil.Error):
                if "migrate_agent.sandbox.worker" in process.cmdline():
                    process.kill()

    def _container(self) -> None:
        for container in containers(self._base):
            with contextlib.suppress(Exception):  # it may have ended meanwhile
                container.kill()


def marked(base: Path) -> list[Any]:
    """The processes that belong to sandboxes whose folders lie in `base`."""
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            environment = process.environ()
            if TOKEN in environment and str(base) in environment.get("HOME", "") and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
    return processes


def containers(base: Path) -> list[Any]:
    """The containers that belong to sandboxes whose folders lie in `base`."""
    if missing("docker"):
        return []
    with contextlib.closing(engine.connect()) as client:
        running = client.containers.list(all=True, filters={"label": engine.LABEL}, ignore_removed=True)
        return [container for container in running if container.labels[engine.LABEL].startswith(str(base))]


def restart_engine() -> None:
    """End the Docker engine behind this user's socket, and start it again as it was started."""
    address = os.environ.get("DOCKER_HOST", f"unix://{engine.DEFAULT_SOCKET}")
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "dockerd" and (address in process.cmdline() or address.endswith(engine.DEFAULT_SOCKET)):
            command = process.cmdline()
            process.terminate()
            psutil.wait_procs([process], timeout=60)
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
            return
    raise SystemExit(f"no dockerd that serves {address} was found")


@contextlib.contextmanager
def _disk() -> Iterator[Path]:
    """A folder; on a small disk of its own where this is root."""
    with tempfile.TemporaryDirectory(prefix="faults-") as mount:
        if os.getuid() == 0:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs", mount], check=True)
        try:
            yield Path(mount)
        finally:
            if os.getuid() == 0:
                subprocess.run(["umount", mount], check=True)


def _verdict(run: Run, number: int) -> str:
    """`right`, `clear` (told to be lost, and why: the verifier then says `unverified`) or `wrong`."""
    if run.status != "ok":
        return "clear" if run.status == "lost" and run.error and run.result is None else "wrong"
    answer = run.output / "answer"
    return "right" if run.result == number**2 and answer.read_text(encoding="utf-8") == str(number**2) else "wrong"


def _one(sandbox: Sandbox, root: Path, number: int, fault: str) -> tuple[str, str]:
    """Verdict and the word on it of one job."""
    (root / "number").write_text(str(number), encoding="utf-8")
    arguments = {"seconds": JOB_SECONDS if fault else 0.0, "fill": fault == "disk"}
    try:
        run = sandbox.run(Job("candidate", "squares:square", root, arguments, {"number": root / "number"}, LIMITS))
    except SandboxUnavailable as error:
        return "clear", str(error)
    verdict = _verdict(run, number)
    sandbox.release(run)
    return verdict, f"{run.status}: {run.error}" if run.error else run.status


def measured(kind: str, jobs: int, restart: bool) -> dict[str, Any]:
    """Run the jobs, every second one with a fault. Gives counts by fault and verdict, the words, and what was left behind."""
    counts: Counter[str] = Counter()
    words: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as code, _disk() as base:
        root = Path(code)
        (root / "squares.py").write_text(CODE, encoding="utf-8")
        sandbox = open_sandbox(kind, folder=base)
        faults = Faults(sandbox, base, restart)
        for number in range(jobs):
            fault = faults.names[number // 2 % len(faults.names)] if number % 2 else ""
            timer = threading.Timer(DELAY, faults.inject, [fault])
            timer.start()
            verdict, word = _one(sandbox, root, number, fault)
            timer.join()
            counts[f"{fault or 'no fault'}: {verdict}"] += 1
            words[word.replace(str(number), "N")] += 1
        sandbox.close()
        leftovers = [*(f"process {item.pid}" for item in marked(base)), *(f"container {item.name}" for item in containers(base))]
        leftovers += [f"file {path.name}" for path in base.iterdir()]
    return {"backend": kind, "jobs": jobs, "ended": sum(counts.values()), "verdicts": dict(counts), "words": dict(words), "left": leftovers}


def sound(row: dict[str, Any]) -> bool:
    """Whether every job ended, none wrongly, none without a fault failed, and nothing was left."""
    allowed = all(verdict.endswith(": right") or (verdict.endswith(": clear") and "no fault" not in verdict) for verdict in row["verdicts"])
    return bool(row["ended"] == row["jobs"] and allowed and not row["left"])


def main() -> None:
    """Run, print JSON, and leave with 1 where it was not sound."""
    parser = argparse.ArgumentParser(description="Jobs in a row while things break.")
    parser.add_argument("--backend", default="docker", choices=("docker", "bubblewrap", "process"))
    parser.add_argument("--jobs", type=int, default=200, metavar="N", help="how many (default: 200)")
    parser.add_argument("--restart-engine", action="store_true", help="also restart the Docker engine, with all that runs in it")
    options = parser.parse_args()
    row = measured(options.backend, options.jobs, options.restart_engine)
    report("faults", [row])
    sys.exit(not sound(row))


if __name__ == "__main__":
    main()
