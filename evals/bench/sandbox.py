"""What a sandbox costs: `python -m migrate_agent.evals.bench.sandbox [--jobs N] [--repeat N]`.

For each backend that works here: the time until the first job of a cold sandbox has ended, and the median time of a warm job, on each side.
Goals: a warm job in Docker at most 0.5 s slower than in a plain process, median; a cold start at most 5 s slower. Sandboxes take turns job
by job, since absolute times vary with what else the machine does.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from migrate_agent.evals.bench.measure import report
from migrate_agent.sandbox import BACKENDS, Sandbox, missing, open_sandbox
from migrate_agent.tools.types import Job, Side

CODE = """
def nothing(arguments, inputs, output):
    return 1

def matmul(arguments, inputs, output):
    import jax.numpy as jnp
    return float(jnp.ones((64, 64)).sum())
"""
JOBS: tuple[tuple[Side, str], ...] = (("original", "nothing"), ("candidate", "nothing"), ("candidate", "matmul"))


def _seconds(sandbox: Sandbox, side: Side, entry: str, root: Path) -> float:
    began = time.perf_counter()
    run = sandbox.run(Job(side, f"measured:{entry}", root))
    if run.status != "ok":
        raise RuntimeError(f"{sandbox.name}: {run.status} {run.error}")
    sandbox.release(run)
    return time.perf_counter() - began


def measured(kinds: list[str], jobs: int, repeat: int) -> list[dict[str, Any]]:
    """Rows of backend, side and entry: median and all samples of cold and warm jobs, in seconds."""
    cold: dict[tuple[str, Side], list[float]] = {}
    warm: dict[tuple[str, Side, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        (root / "measured.py").write_text(CODE, encoding="utf-8")
        for _ in range(repeat):
            with contextlib.ExitStack() as stack:
                for kind in kinds:
                    sandbox = open_sandbox(kind)
                    stack.callback(sandbox.close)
                    for side in ("original", "candidate"):
                        cold.setdefault((kind, side), []).append(_seconds(sandbox, side, "nothing", root))
        with contextlib.ExitStack() as stack:
            opened = {kind: open_sandbox(kind) for kind in kinds}
            for sandbox in opened.values():
                stack.callback(sandbox.close)
            # One more than are counted: the first starts the worker.
            for _ in range(jobs + 1):
                for (kind, sandbox), (side, entry) in ((backend, job) for backend in opened.items() for job in JOBS):
                    warm.setdefault((kind, side, entry), []).append(_seconds(sandbox, side, entry, root))
    rows = [{"backend": kind, "side": side, "job": "cold start", **_summary(values)} for (kind, side), values in cold.items()]
    rows += [
        {"backend": kind, "side": side, "job": f"warm: {entry}", **_summary(values[1:])} for (kind, side, entry), values in warm.items()
    ]
    return rows


def _summary(values: list[float]) -> dict[str, Any]:
    return {"median_seconds": round(statistics.median(values), 4), "samples": [round(value, 4) for value in values]}


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description="Time of cold and warm jobs in each sandbox.")
    parser.add_argument("--jobs", type=int, default=20, metavar="N", help="warm jobs of each kind (default: 20)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="cold starts (default: 3)")
    options = parser.parse_args()
    report("sandbox", measured([kind for kind in BACKENDS if not missing(kind)], options.jobs, options.repeat))


if __name__ == "__main__":
    main()
