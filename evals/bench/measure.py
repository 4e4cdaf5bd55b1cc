"""Runs a function in a fresh process, and says what that took."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from migrate_agent.evals.records import commit, today


def arguments(description: str, values: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line that all benchmarks share: `paths` and `repeat`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="root of a source tree")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="processes per tree (default: 3)")
    return parser.parse_args(values)


def repeat(entry: str, path: Path, times: int) -> dict[str, Any]:
    """Run `entry` (`package.module:function`, from a path to JSON) `times` times in processes of their own.

    Gives what the last one returned, the medians of wall and CPU seconds, the highest peak memory (bytes), and all samples.
    Raises `subprocess.CalledProcessError` where one fails; its traceback is on standard error.
    """
    samples = [_sample(entry, path) for _ in range(times)]
    numbers = {name: [sample[name] for sample in samples] for name in ("wall_seconds", "cpu_seconds", "peak_bytes")}
    return {
        "path": str(path),
        **samples[-1]["result"],
        "wall_seconds": statistics.median(numbers["wall_seconds"]),
        "cpu_seconds": statistics.median(numbers["cpu_seconds"]),
        "peak_bytes": max(numbers["peak_bytes"]),
        "samples": numbers,
    }


def report(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print one JSON document: what was measured, by which command, when and where, and the rows."""
    machine = {"python": platform.python_version(), "platform": platform.platform(), "cpus": os.cpu_count()}
    about = {"command": " ".join(["python", *sys.orig_argv[1:]]), "date": today(), "commit": commit(), "machine": machine}
    print(json.dumps({"benchmark": name, **about, "rows": rows}, indent=2))


def cpu_seconds() -> float:
    """User and system time of this process and of the children that it has waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _sample(entry: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", __spec__.name, entry, str(path)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    # The last line is ours; what is measured may print before it.
    sample: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return sample


def _peak_bytes() -> int:
    # VmHWM begins anew with the program; ru_maxrss of this process would still hold what the parent had before exec.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024


def _run(entry: str, path: str) -> None:
    """The child: what is imported before the function is called does not count as time, but does as memory."""
    module, _, name = entry.partition(":")
    function = getattr(importlib.import_module(module), name)
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = function(Path(path))
    costs = {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": cpu_seconds() - cpu, "peak_bytes": _peak_bytes()}
    print(json.dumps({**costs, "result": result}))


if __name__ == "__main__":
    _run(*sys.argv[1:])
