"""Public repositories as they are: each with one command for its top models, at first look.

The clones are read from the folder that `--sources` names and are never stored here. Files of the pinned commit are laid out as a repository of one commit.
"""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from migrate_agent.evals.suite import Group, Options, Outcome, Suite
from migrate_agent.evals.zoo_packages.draws import MAX_TEXT, TEXTS
from migrate_agent.evals.zoo_packages.packages import Package, PackageError
from migrate_agent.evals.zoo_packages.zoo_run import LIMIT_SECONDS, STATUS, commit_all, migrate, reason_of, working_folder, write_examples

REPOSITORIES = Path(__file__).parents[1] / "repositories"


@dataclass(frozen=True)
class Repository:
    """A public repository at one commit. `top` are the units that count: the models that its users build."""

    package: Package
    address: str
    commit: str
    top: tuple[str, ...]


def load_repositories(folder: Path = REPOSITORIES) -> dict[str, Repository]:
    """Name → repository, of each TOML file: `address`, `commit`, `top`, and `[[example]]` rows as in `migrate.toml`."""
    found = {}
    for file in sorted(folder.glob("*.toml")):
        row = tomllib.loads(file.read_text(encoding="utf-8"))
        name = file.name.removesuffix(".toml")
        found[name] = Repository(Package(name, "repository", (), tuple(row["example"])), row["address"], row["commit"], tuple(row["top"]))
    return found


def groups(options: Options) -> Sequence[Group]:
    """Each repository by itself."""
    return [(name,) for name in load_repositories() if options.wanted(name)]


def run(group: Group, options: Options) -> Iterator[Outcome]:
    """Migrate these repositories: one outcome for each unit that the command took."""
    known = load_repositories()
    if not options.sources:
        yield from (Outcome(name, "refused", "not read: nobody said where the clones are (--sources DIR)") for name in group)
        return
    for name in group:
        with working_folder(name, options.keep) as folder:
            try:
                yield from _judged(known[name], folder, options)
            except PackageError as error:
                yield Outcome(name, "refused", f"not read: {error}")


def _judged(repository: Repository, folder: Path, options: Options) -> Iterator[Outcome]:
    package = repository.package
    checkout, report = folder / package.name, folder / "report.json"
    lay_out_commit(repository, Path(options.sources), checkout)
    write_examples(package, checkout, LIMIT_SECONDS)
    commit_all(checkout)
    rows, error = migrate(checkout, report, options.sandbox, repository.top)
    if rows is None:
        yield Outcome(package.name, "wrong", f"the run gave no report: {error}")
        return
    for row in rows["units"]:
        unit = f"{row['source']}:{row['name']}"
        details = {"top": unit in repository.top, "cause": row["cause"], "seconds": row["seconds"]}
        yield Outcome(f"{package.name}/{unit}", STATUS[row["status"]], reason_of(row), details)


def lay_out_commit(repository: Repository, sources: Path, folder: Path) -> None:
    """Write the text files of the pinned commit below `folder`. Raises `PackageError` where `sources` has no clone that holds it."""
    clone = _clone(repository, sources)
    listed = _git(clone, "ls-tree", "-r", "--long", repository.commit).decode().splitlines()
    for line in listed:
        fields, _, name = line.partition("\t")
        kind, size = fields.split()[1], fields.split()[3]
        # A partial clone lacks large files, and git tells no size of them: they are data.
        if kind != "blob" or Path(name).suffix not in TEXTS or not size.isdecimal() or int(size) > MAX_TEXT:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(_git(clone, "show", f"{repository.commit}:{name}"))


def _clone(repository: Repository, sources: Path) -> Path:
    owner, _, name = repository.address.removeprefix("https://github.com/").partition("/")
    for mirror in (sources / name, sources / owner / name, sources / f"{owner}+{name}"):
        for folder in (mirror, mirror / ".git", mirror / "repo", mirror / "repo" / ".git"):
            if (folder / "HEAD").exists() and _has(folder, repository.commit):
                return folder
    raise PackageError(f"{sources} has no clone of {repository.address} with commit {repository.commit}: git clone it there (--sources)")


def _has(clone: Path, commit: str) -> bool:
    command = ["git", "--git-dir", str(clone), "cat-file", "-e", f"{commit}^{{tree}}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "--git-dir", str(clone), *arguments], capture_output=True, check=True).stdout


def figures(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Counts: `units` of the command and how many `verified`, and of the top models `top` in all, `top_verified`."""
    counted = [outcome for outcome in outcomes if "top" in outcome.details]
    tops = [outcome for outcome in counted if outcome.details["top"]]
    verified = sum(outcome.status == "right" for outcome in counted)
    return {
        "units": len(counted),
        "verified": verified,
        "top": len(tops),
        "top_verified": sum(outcome.status == "right" for outcome in tops),
    }


def _by_repository(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    rows: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        rows.setdefault(outcome.case.split("/")[0], []).append(outcome)
    return rows


def _whole(row: dict[str, int]) -> bool:
    return bool(row["top"]) and row["top"] == row["top_verified"]


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures of each repository, and how many are whole: all of their top models are verified."""
    rows = {name: figures(cases) for name, cases in sorted(_by_repository(outcomes).items())}
    return {"repositories": rows, "whole": sum(map(_whole, rows.values()))}


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each repository, and one that says how many are whole."""
    rows = {name: figures(cases) for name, cases in sorted(_by_repository(outcomes).items())}
    for name, row in rows.items():
        yield f"{name:36} verified {row['verified']:3} of {row['units']:3} units; top models {row['top_verified']:2} of {row['top']:2}"
    yield f"whole: {sum(map(_whole, rows.values()))} of {len(rows)} repositories"


def versions(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Our frameworks, and the commit of each repository of which a case came up."""
    names = {outcome.case.split("/")[0] for outcome in outcomes}
    commits = {name: row.commit for name, row in load_repositories().items() if name in names}
    return {name: version(name) for name in ("torch", "jax", "flax", "numpy")} | commits


REPOSITORIES_SUITE = Suite(
    "repositories",
    "Public repositories",
    "units",
    groups,
    run,
    3600.0,
    versions,
    kept=True,
    first_look=True,
    summary=summary,
    report=report,
)
