"""Seconds from a unit's rewrite to its verdict: `python -m migrate_agent.evals.bench.verify PATH… [--repeat N]`.

Each repetition migrates a copy of the folder, made a git repository, with `migrate-agent run --yes --no-llm --sandbox process`; the seconds of each
unit are those of its report.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from migrate_agent.evals.bench.measure import arguments, repeat, report

GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false")


def measured(folder: Path) -> dict[str, Any]:
    """One run over a copy of the folder. Raises `RuntimeError` where it gave no report."""
    with tempfile.TemporaryDirectory() as scratch:
        repository, path = Path(scratch) / folder.name, Path(scratch) / "report.json"
        shutil.copytree(folder, repository, ignore=shutil.ignore_patterns(".git", "__pycache__"))
        for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "bench"]):
            subprocess.run([*GIT, *command], cwd=repository, check=True)
        options = ["--repo", str(repository), "--yes", "--no-llm", "--sandbox", "process", "--report", str(path)]
        process = subprocess.run(
            [sys.executable, "-m", "migrate_agent.agent.cli", "run", *options], capture_output=True, text=True, check=False
        )
        if not path.exists():
            raise RuntimeError(process.stderr.strip().splitlines()[-1] if process.stderr.strip() else "the run gave no report")
        units = json.loads(path.read_text(encoding="utf-8"))["units"]
    seconds = {unit["name"]: unit["seconds"] for unit in units}
    return {
        "statuses": {unit["name"]: unit["status"] for unit in units},
        "unit_seconds": seconds,
        "median_unit_seconds": statistics.median(seconds.values()),
    }


def main() -> None:
    """Measure each folder, and print JSON."""
    options = arguments("Seconds to verify each unit of a repository.")
    report("verify", [repeat(f"{__spec__.name}:measured", path, options.repeat) for path in options.paths])


if __name__ == "__main__":
    main()
