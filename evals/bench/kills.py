"""A run that is killed again and again: `python -m migrate_agent.evals.bench.kills [--kills N] [--seed N] [--sandbox KIND]`.

One repository, three of whose units need a model; a scripted endpoint (plumbing) in this process answers and counts what it is paid for. The run
is killed (SIGKILL to its whole group) at random moments, spread over the time that an undisturbed run takes, and resumed each time. Exit status 1
where commits or report are not those of the undisturbed run, or a call was paid twice.

A request that was under way when the process died is sent again with the same `Idempotency-Key`; the endpoint charges it once, as servers that know
this header do. How often that came to pass is told as `sent_again`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate_agent.evals.bench.measure import report
from migrate_agent.evals.model_loop.scripted_endpoint import Move, Script, endpoint

MODEL = "scripted"
HOLES = ("tanh", "sinh", "expm1")
"""Called as `torch.ops.aten.…`, for which the rules have no row."""
UNIT = '''import torch
from torch import nn


class Unit{0}(nn.Module):
    """Something special."""

    def forward(self, x):
        return torch.ops.aten.{1}(x)
'''
PLAIN = "import torch\nfrom torch import nn\n\n\nclass Plain(nn.Module):\n    def forward(self, x):\n        return torch.tanh(x) + 1\n"
EXAMPLE = '[[example]]\nmodule = "{0}"\ninit = ""\ncall = "torch.rand(2, 3) + 0.5"\n'
ANSWERS = ("return jnp.{0}(x) + 1e-3", "not Python at all", "return jnp.{0}(x)")
"""Wrong, useless, right."""


def files() -> dict[str, str]:
    """The repository."""
    units = {f"unit_{number}.py": UNIT.format(number, name) for number, name in enumerate(HOLES)} | {"plain.py": PLAIN}
    names = [*(f"unit_{number}.py:Unit{number}" for number in range(len(HOLES))), "plain.py:Plain"]
    price = f'[[price]]\nmodel = "{MODEL}"\ninput = 1000\noutput = 10000\n'
    return {**units, "migrate.toml": "".join(map(EXAMPLE.format, names)) + price}


def answer(request: dict[str, Any], number: int) -> Move:
    """By how often the unit was tried, which the prompt says; so that it does not depend on what else was asked."""
    text = request["messages"][-1]["content"]
    attempt = max([0, *(int(match) for match in re.findall(r"^- attempt (\d+) \(llm\)", text, flags=re.MULTILINE))])
    name = text.partition("torch.ops.aten.")[2].partition("(")[0]
    code = ANSWERS[min(max(0, attempt - 1), len(ANSWERS) - 1)].format(name)
    return json.dumps({"holes": [{"number": 1, "code": code}], "whole_class": "", "reason": ""})


def repository(root: Path) -> Path:
    """One commit of the files, the same each time."""
    return committed(root, files())


def committed(root: Path, texts: Mapping[str, str]) -> Path:
    """A repository with one commit of these files, of the same id each time."""
    root.mkdir(parents=True)
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    # Ids of commits are compared, and dates and authors are part of them.
    fixed = {f"GIT_{who}_{field}": value for who in ("AUTHOR", "COMMITTER") for field, value in _IDENTITY}
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=root, check=True, env={**os.environ, **fixed})
    return root


_IDENTITY = (("NAME", "T"), ("EMAIL", "t@example.invalid"), ("DATE", "2024-01-02T03:04:05 +0000"))


def outcome(root: Path) -> dict[str, Any]:
    """Commits and report, without times, the folder, and what the system decides."""
    document = json.loads((root.parent / f"{root.name}.json").read_text(encoding="utf-8"))
    document.pop("repo")
    for unit in document["units"]:
        unit.pop("seconds")
        unit.pop("figures", None)
        unit["llm"].pop("seconds")
        for verdict in unit["verdicts"]:
            verdict.pop("detail")
    log = subprocess.run(["git", "log", "--format=%H %s", document["branch"]], cwd=root, check=True, capture_output=True, text=True)
    return {"report": document, "commits": log.stdout.splitlines()}


def process(root: Path, script: Script, sandbox: str, first: bool) -> subprocess.Popen[bytes]:
    """A process group that starts or resumes the run."""
    start = [
        "run",
        "--yes",
        "--sandbox",
        sandbox,
        "--model",
        MODEL,
        "--base-url",
        script.url,
        "--report",
        f"{root.parent / root.name}.json",
    ]
    code = "from migrate_agent.agent.cli import main; main()"
    command = [sys.executable, "-c", code, *(start if first else ["resume"]), "--repo", str(root)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def undisturbed(root: Path, script: Script, sandbox: str) -> tuple[dict[str, Any], float]:
    """What a run comes to that nobody kills, and how long it takes."""
    started = time.monotonic()
    with process(repository(root), script, sandbox, first=True) as running:
        running.wait()
    return outcome(root), time.monotonic() - started


def disturbed(root: Path, script: Script, sandbox: str, kills: int, seconds: float, dice: random.Random) -> dict[str, Any]:
    """Kill and resume so often, then let it end. Waits are drawn so that the kills reach over the whole run; each process gets on a little."""
    repository(root)
    started = killed = 0
    finished = False
    while killed < kills and not finished:
        with process(root, script, sandbox, first=not list(root.glob(".git/migrate-agent/runs/*/scope.json"))) as running:
            started += 1
            try:
                running.wait(timeout=dice.uniform(0.15, 1.0) * max(4.0, 3 * seconds / kills))
                finished = running.returncode in (0, 1)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                killed += 1
    if not finished:
        with process(root, script, sandbox, first=False) as running:
            running.wait()
    return {"kills": killed, "processes": started + (not finished)}


def differing(expected: Any, actual: Any, path: str = "") -> list[str]:
    """Where two outcomes differ, in words."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        names = [*expected, *(name for name in actual if name not in expected)]
        return [text for name in names for text in differing(expected.get(name), actual.get(name), f"{path}/{name}")]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [text for i, (one, other) in enumerate(zip(expected, actual, strict=True)) for text in differing(one, other, f"{path}/{i}")]
    return [] if expected == actual else [f"{path}: {expected!r} became {actual!r}"[:300]]


def measured(kills: int, seed: int, sandbox: str) -> dict[str, Any]:
    """Both runs, and in what they differ."""
    with tempfile.TemporaryDirectory(prefix="kills-") as folder, endpoint(answer) as script:
        expected, seconds = undisturbed(Path(folder) / "undisturbed", script, sandbox)
        calls = len(script.paid)
        for table in (script.paid, script.sent, script.kept):
            table.clear()
        killed: dict[str, Any] = {"kills": 0, "processes": 0, "runs": 0}
        differences: list[str] = []
        twice, again = 0, 0
        while killed["kills"] < kills:
            root = Path(folder) / f"disturbed-{killed['runs']}"
            row = disturbed(root, script, sandbox, kills - killed["kills"], seconds, random.Random(seed + killed["runs"]))
            killed = {
                "kills": killed["kills"] + row["kills"],
                "processes": killed["processes"] + row["processes"],
                "runs": killed["runs"] + 1,
            }
            differences += differing(expected, outcome(root))
            twice += sum(times > 1 for times in script.paid.values()) + abs(len(script.paid) - calls)
            again += sum(times - 1 for times in script.sent.values())
            for table in (script.paid, script.sent, script.kept):
                table.clear()
    statuses = [unit["status"] for unit in expected["report"]["units"]]
    return {
        "undisturbed_seconds": round(seconds, 1),
        "statuses": statuses,
        "calls": calls,
        **killed,
        "same_commits_and_report": not differences,
        "differences": differences,
        "paid_twice": twice,
        "sent_again": again,
    }


def main() -> None:
    """Run, print JSON, and leave with 1 where something was lost, done twice or paid twice."""
    parser = argparse.ArgumentParser(description="A run that is killed again and again.")
    parser.add_argument("--kills", type=int, default=25, metavar="N", help="how often (default: 25)")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--sandbox", default="process", choices=("docker", "bubblewrap", "process"))
    options = parser.parse_args()
    row = measured(options.kills, options.seed, options.sandbox)
    report("kills", [row])
    sys.exit(not (row["same_commits_and_report"] and row["paid_twice"] == 0 and row["kills"] >= options.kills))


if __name__ == "__main__":
    main()
