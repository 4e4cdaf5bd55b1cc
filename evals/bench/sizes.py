"""Nets of real size: `python -m migrate_agent.evals.bench.sizes NAME… [--sandbox KIND] [--keep FOLDER]`.

Each is a file of `evals/sizes/`, in the form of the zoo's packages, with one example in the published configuration (of the largest ones as `full`,
beside a small one). In a process of its own, the rules draft the net with all that it needs, and the verifier judges it as `migrate-agent run`
does; the classes that it is made of are judged inside it alone. Seconds are those of the verification, of all together, and of the processor (less
the last second of each process). Memory is that of all processes (each shared page counted once), disk what lies in the working folder and the
folder for temporary files; both are looked at every second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from migrate_agent.agent.config.config import load_config
from migrate_agent.agent.loop.exercising.exercise import Exercise
from migrate_agent.agent.loop.judging import lay_out
from migrate_agent.agent.loop.wiring import services
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.evals.bench.measure import report
from migrate_agent.evals.zoo_packages.packages import Package, load_packages
from migrate_agent.evals.zoo_packages.zoo_run import make_repository
from migrate_agent.tools.types import Evidence, Recording

SIZES = Path(__file__).parents[1] / "sizes"
RESULT = "result.json"
EVERY = 1.0
"""Seconds between two looks."""


@dataclass
class Peaks:
    """The most that was seen of memory and disk, in bytes, and the processor's seconds of each process."""

    memory: int = 0
    disk: int = 0
    seconds: dict[int, float] = field(default_factory=dict)

    def look(self, process: psutil.Process, folder: Path) -> None:
        """Take in what the process and its descendants hold now, and the files below a folder."""
        self.memory = max(self.memory, sum(self._resident(process)))
        self.disk = max(self.disk, sum(_file_sizes(folder)))

    def _resident(self, process: psutil.Process) -> Iterator[int]:
        """Proportional resident memory of a process and of all below it."""
        with contextlib.suppress(psutil.Error):
            for member in (process, *process.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    times = member.cpu_times()
                    self.seconds[member.pid] = times.user + times.system
                    yield member.memory_full_info().pss


def _file_sizes(folder: Path) -> Iterator[int]:
    for directory, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # removed meanwhile
                yield os.lstat(os.path.join(directory, name)).st_blocks * 512


def measured(package: Package, folder: Path, sandbox: str) -> dict[str, Any]:
    """One verification of the package's net, laid out below `folder`. Raises `RuntimeError` where it gave no verdict."""
    make_repository(package, folder / "repository")
    scratch, result = folder / "tmp", folder / RESULT
    scratch.mkdir()
    command = [sys.executable, "-m", __spec__.name, package.name, "--judge", str(folder), "--sandbox", sandbox]
    began, peaks = time.monotonic(), Peaks()
    with open(folder / "log.txt", "w", encoding="utf-8") as log:
        process = psutil.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(scratch)})
        while process.poll() is None:
            peaks.look(process, folder)
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(EVERY)
    if not result.exists():
        raise RuntimeError(f"{package.name}: there is no verdict; see {folder / 'log.txt'}")
    costs = {
        "all_seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(sum(peaks.seconds.values())),
        "peak_gib": round(peaks.memory / 2**30, 2),
        "disk_mib": round(peaks.disk / 2**20),
    }
    example = {key: package.examples[0][key] for key in ("module", "init", "full", "call") if key in package.examples[0]}
    return {"net": package.name, "versions": package.versions, **example, **json.loads(result.read_text(encoding="utf-8")), **costs}


def judge(identifier: str, folder: Path, sandbox_kind: str) -> dict[str, Any]:
    """The verdict on the rules' draft of a unit of the repository below `folder`, as JSON."""
    root = folder / "repository"
    called, config = services(_tell), load_config(root)
    inventory = called.scanned(root, config)
    unit = inventory.unit(identifier)
    with contextlib.closing(called.open_sandbox(sandbox_kind, "cpu")) as sandbox:
        exercise = Exercise(called, config, inventory, sandbox, folder / "recorded")
        recording = exercise.add_methods([unit], exercise.add_further([unit], exercise.run_given(Recording())))
        examples = examples_of(recording, unit.id)
        if not examples:
            return {"status": "unverified", "reason": recording.errors.get(unit.id, "no example ran")}
        draft = called.compose(inventory, recording.observations, [unit.id], {}, examples)
        if draft.holes:
            return {"status": "unverified", "reason": "; ".join(f"{hole.source}:{hole.span.line}: {hole.reason}" for hole in draft.holes)}
        translated = [called.translate(inventory, recording.observations, example) for example in examples]
        candidate, inputs = lay_out(folder / "candidate", draft.files), folder / "inputs"
        inputs.mkdir()
        evidence = called.verify(
            unit, examples, translated, root, candidate, inventory, sandbox, inputs, config, lambda text: _tell(f"verifying: {text}"), True
        )
    return _row(evidence, len(examples))


def _row(evidence: Evidence, examples: int) -> dict[str, Any]:
    bad = [f"{verdict.check}: {verdict.status}: {verdict.detail}"[:300] for verdict in evidence.verdicts if verdict.status != "pass"]
    full = {verdict.check: verdict.detail for verdict in evidence.verdicts if verdict.check == "full_size"}
    return {
        "status": evidence.status,
        "examples": examples,
        "checks": f"{sum(verdict.status == 'pass' for verdict in evidence.verdicts)} of {len(evidence.verdicts)}",
        "not_passed": bad,
        **full,
        "notes": list(evidence.notes),
        "figures": dict(evidence.figures),
        "seconds": round(evidence.seconds, 1),
    }


def _tell(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


@contextlib.contextmanager
def _place(name: str, keep: str) -> Iterator[Path]:
    if keep:
        folder = Path(keep) / name
        folder.mkdir(parents=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="sizes-") as scratch:
        yield Path(scratch)


def main() -> None:
    """Measure each net, one after the other, and print JSON."""
    packages = {package.name: package for package in load_packages(SIZES)}
    parser = argparse.ArgumentParser(description="Nets of real size: seconds, memory and disk of their verification.")
    parser.add_argument("names", nargs="+", choices=sorted(packages), metavar="NAME", help=", ".join(sorted(packages)))
    parser.add_argument("--sandbox", default="process", choices=("docker", "bubblewrap", "process"))
    parser.add_argument("--keep", default="", metavar="FOLDER", help="where repositories, reports and logs stay")
    parser.add_argument("--judge", default="", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        folder = Path(options.judge)
        row = judge(packages[options.names[0]].examples[0]["module"], folder, options.sandbox)
        (folder / RESULT).write_text(json.dumps(row), encoding="utf-8")
        return
    rows = []
    for name in options.names:
        with _place(name, options.keep) as folder:
            rows.append(measured(packages[name], folder, options.sandbox))
    report("sizes", rows)


if __name__ == "__main__":
    main()
