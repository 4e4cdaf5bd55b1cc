"""A run on a Ray cluster beside one on one machine: `python -m migrate_agent.evals.bench.cluster [--units N] [--sandbox KIND]`.

The repository is made here: N small units, each verified by the real verifier. One run has two threads on this machine. The other has two Ray nodes,
processes of this machine with a processor each; one node is killed (SIGKILL) when half of the units are committed, and the command itself at
three quarters; `resume` takes it up. Exit status 1 where commits or report differ.

`--write FOLDER` only writes the repository.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from migrate_agent.evals.bench.kills import committed, differing, outcome
from migrate_agent.evals.bench.measure import report

CLI = "from migrate_agent.agent.cli import main; main()"
BRANCH = "migrated"
STORE = 100 * 2**20
"""Bytes of shared memory of each node: the repository is small."""
KINDS = (
    ("self.weight = nn.Parameter(torch.ones(size))", "torch.relu(x * self.weight) + {number}"),
    ("self.fc = nn.Linear(size, size)", "torch.tanh(self.fc(x)) + x / {number}"),
    ("self.norm = nn.LayerNorm(size)", "self.norm(x) * {number}"),
    ("self.shift = nn.Parameter(torch.zeros(size))", "torch.sigmoid(x - self.shift) / {number}"),
    ("self.fc = nn.Linear(size, 2 * size, bias=False)", "self.fc(x).chunk(2, dim=-1)[0] * {number}"),
    ("self.scale = nn.Parameter(torch.ones(1))", "torch.softmax(x * self.scale, dim=-1) * {number}"),
)
"""What a unit holds, and what it computes."""
UNIT = """import torch
from torch import nn


class Unit{number}(nn.Module):
    def __init__(self, size):
        super().__init__()
        {state}

    def forward(self, x):
        return {result}
"""
EXAMPLE = '[[example]]\nmodule = "unit_{number}.py:Unit{number}"\ninit = "4"\ncall = "torch.randn(3, 4)"\n'


def files(units: int) -> dict[str, str]:
    """The repository: a file for each unit, and an example of each."""
    texts = {}
    for number in range(1, units + 1):
        state, result = KINDS[number % len(KINDS)]
        texts[f"unit_{number}.py"] = UNIT.format(number=number, state=state, result=result.format(number=number))
    return texts | {"migrate.toml": "\n".join(EXAMPLE.format(number=number) for number in range(1, units + 1))}


def process(root: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    """A command on the repository, in a process group of its own; what it says is added to a log beside it."""
    with open(root.parent / f"{root.name}.log", "ab") as log:
        command = [sys.executable, "-c", CLI, *arguments, "--repo", str(root)]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def run_arguments(root: Path, sandbox: str) -> list[str]:
    """`run` as everybody starts it."""
    return ["run", "--yes", "--no-llm", "--sandbox", sandbox, "--branch", BRANCH, "--report", f"{root.parent / root.name}.json"]


def commits(root: Path) -> int:
    """How many units the branch has so far."""
    command = ["git", "rev-list", "--count", f"HEAD..{BRANCH}"]
    text = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    return int(text or 0)


def watched(running: subprocess.Popen[bytes], root: Path, at: dict[int, Callable[[], None]]) -> dict[int, float]:
    """Wait for the command, and do each thing when the branch has so many units; gives the seconds until then."""
    began, reached = time.monotonic(), dict[int, float]()
    while running.poll() is None:
        count = commits(root)
        for number in [number for number in at if number not in reached and count >= number]:
            reached[number] = round(time.monotonic() - began, 1)
            at[number]()
        time.sleep(0.5)
    return reached


@contextmanager
def cluster() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of two nodes, and what kills one of them."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    utilities: Any = importlib.import_module("ray.cluster_utils")
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    started = utilities.Cluster(initialize_head=True, head_node_args=head)
    nodes = [started.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2)]
    try:
        yield started.address, lambda: started.remove_node(nodes[1], allow_graceful=False)
    finally:
        started.shutdown()


def measured(units: int, sandbox: str) -> dict[str, Any]:
    """Both runs, and in what they differ."""
    half, later = units // 2, units * 3 // 4
    with tempfile.TemporaryDirectory(prefix="cluster-") as scratch:
        one, many = (committed(Path(scratch) / name, files(units)) for name in ("one", "many"))
        began = time.monotonic()
        running = process(one, [*run_arguments(one, sandbox), "--jobs", "2"])
        alone = watched(running, one, {half: lambda: None})
        alone_seconds = time.monotonic() - began
        with cluster() as (address, kill_node):
            began = time.monotonic()
            driver = process(many, [*run_arguments(many, sandbox), "--cluster", address])
            spread = watched(driver, many, {half: kill_node, later: lambda: os.killpg(driver.pid, signal.SIGKILL)})
            resumed = process(many, ["resume"])
            resumed.wait()
            seconds = time.monotonic() - began
        expected, actual = outcome(one), outcome(many)
    differences = differing(expected, actual)
    return {
        "units": units,
        "verified": sum(unit["status"] == "verified" for unit in expected["report"]["units"]),
        "one_machine_seconds": round(alone_seconds, 1),
        "one_machine_half_seconds": alone.get(half),
        "cluster_seconds": round(seconds, 1),
        "cluster_half_seconds": spread.get(half),
        "node_killed_after_units": half if half in spread else None,
        "command_killed_after_units": later if later in spread else None,
        "same_commits_and_report": not differences,
        "differences": differences[:20],
    }


def main() -> None:
    """Run, print JSON, and leave with 1 where the two differ."""
    parser = argparse.ArgumentParser(description="A run on a Ray cluster beside one on one machine.")
    parser.add_argument("--units", type=int, default=60, metavar="N")
    parser.add_argument("--sandbox", default="process", choices=("docker", "bubblewrap", "process"))
    parser.add_argument("--write", default="", metavar="FOLDER", help="write the repository there, and run nothing")
    options = parser.parse_args()
    if options.write:
        committed(Path(options.write), files(options.units))
        return
    row = measured(options.units, options.sandbox)
    report("cluster", [row])
    sys.exit(not row["same_commits_and_report"])


if __name__ == "__main__":
    main()
