"""One package of the `zoo` suite: laid out as a git repository, migrated by the command line, judged by the verifier."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.evals.suite import Outcome, Status
from migrate_agent.evals.zoo_packages.packages import Package, cache_folder, lay_out
from migrate_agent.evals.zoo_packages.tidiness import static_problems
from migrate_agent.tools.scan import scan

GIT = ["git", "-c", "user.name=zoo", "-c", "user.email=zoo@example.invalid", "-c", "commit.gpgsign=false"]
CLI = "from migrate_agent.agent.cli import main; main()"
STATUS: Mapping[str, Status] = {"verified": "right", "failed": "wrong", "unverified": "refused", "skipped": "excluded"}

LIMIT_SECONDS = 480
"""What one run in the sandbox may take. It is longer than the default, so that a busy machine does not decide what a draw measures."""


def make_repository(package: Package, folder: Path) -> None:
    """The package as a git repository of one commit, with its `migrate.toml`. Raises `PackageError`."""
    lay_out(package, folder, cache_folder())
    write_examples(package, folder)
    commit_all(folder)


def write_examples(package: Package, folder: Path, seconds: float | None = None) -> None:
    """The package's examples as the `migrate.toml` of a repository, and what one run in the sandbox may take (None: the default)."""
    limits = [] if seconds is None else [f"[limits]\nseconds = {seconds}\n"]
    (folder / "migrate.toml").write_text("\n".join([*map(_example_text, package.examples), *limits]), encoding="utf-8")


def commit_all(folder: Path) -> None:
    """Make the folder a git repository of one commit."""
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", folder.name]):
        subprocess.run([*GIT, *command], cwd=folder, check=True)


def _example_text(row: Mapping[str, Any]) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in row.items() if key != "domain"]
    if domain := row.get("domain"):
        lines.append(f"domain = {{ min = {domain['min']}, max = {domain['max']} }}")
    return "\n".join(["[[example]]", *lines, ""])


def run_package(package: Package, folder: Path, sandbox: str) -> Iterator[Outcome]:
    """Migrate a package by `migrate-agent run --yes --no-llm`: one outcome for each unit of its report."""
    make_repository(package, folder / "repository")
    yield from run_repository(package.name, folder / "repository", folder / "report.json", sandbox, package.exclude)


def run_repository(
    name: str, repository: Path, report: Path, sandbox: str, exclude: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Outcome]:
    """Migrate a repository by the command line; `exclude` maps units that do not count to the reason. The report is written to `report`."""
    rows, error = migrate(repository, report, sandbox)
    if rows is None:
        yield Outcome(name, "wrong", f"the run gave no report: {error}")
        return
    yield from (_outcome(name, exclude, row) for row in rows["units"])
    sources = {file.target: (repository / file.path).read_text(encoding="utf-8") for file in scan(repository).files}
    yield from tidiness(name, branch_files(repository, rows["branch"]), sources)


@contextmanager
def working_folder(name: str, keep: str) -> Iterator[Path]:
    """Where a group is laid out: a new folder below `keep`, else one that is removed."""
    if not keep:
        with tempfile.TemporaryDirectory(prefix="migrate-agent-") as folder:
            yield Path(folder)
        return
    place = Path(keep) / name
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    yield place


def migrate(repository: Path, report: Path, sandbox: str, units: Sequence[str] = ()) -> tuple[dict[str, Any] | None, str]:
    """The report of `migrate-agent run --yes --no-llm`, written to `report`; where there is none, the last line of the run's errors.

    `units` limits the run to these and what they need.
    """
    command = [sys.executable, "-c", CLI, "run", "--repo", str(repository), "--yes", "--no-llm"]
    chosen = [text for unit in units for text in ("--module", unit)]
    process = subprocess.run(
        [*command, *chosen, "--sandbox", sandbox, "--report", str(report)], capture_output=True, text=True, check=False
    )
    if not report.exists():
        return None, (process.stderr.strip().splitlines()[-1:] or ["nothing on standard error"])[0]
    content: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return content, ""


def _outcome(name: str, exclude: Mapping[str, str], row: Mapping[str, Any]) -> Outcome:
    unit = f"{row['source']}:{row['name']}"
    if unit in exclude:
        return Outcome(f"{name}/{unit}", "excluded", exclude[unit])
    return Outcome(f"{name}/{unit}", STATUS[row["status"]], reason_of(row), {"seconds": row["seconds"]})


def reason_of(row: Mapping[str, Any]) -> str:
    """Why a unit of a report is not verified: the first check that did not pass, else the first hole, else the report's own sentence."""
    if row["status"] == "verified":
        return ""
    bad = [verdict for verdict in row["verdicts"] if verdict["status"] != "pass"]
    holes = [f"{hole['code']}: {hole['reason']}" for hole in row.get("holes", [])]
    reasons = [f"{verdict['check']}: {verdict['detail']}" for verdict in bad] + holes + [row.get("reason", "")]
    return next((text for text in reasons if text), "no reason given")[:500]


def branch_files(repository: Path, branch: str) -> dict[str, str]:
    """The Python files that the branch added."""
    names = _git(repository, "diff", "--name-only", "--diff-filter=A", f"HEAD...{branch}").split()
    return {name: _git(repository, "show", f"{branch}:{name}") for name in names if name.endswith(".py")}


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=True).stdout


def tidiness(package: str, files: Mapping[str, str], sources: Mapping[str, str]) -> Iterator[Outcome]:
    """What the static check finds in these files (path → text); `sources` are the originals, by the same paths."""
    findings = static_problems(files, sources)
    status: Status = "untidy" if findings else "tidy"
    yield Outcome(f"{package}/static check", status, "; ".join(findings[:5])[:500], {"files": len(files), "untidy": findings})
