"""How much of the surface of units is run and compared: `python -m migrate_agent.evals.bench.reach NAME… --keep FOLDER [--sandbox KIND]`.

Each name is a package of the zoo, or a folder with a repository, such as `examples/gpt`. It is laid out below the folder and migrated as the suite
`zoo` does it; what lies there already is only read again. Of the verified units of a run, each statement counts once, whichever units share it:

* of the original, the statements of all functions that belong to a verified unit, without those that only refuse or tell, and without what has no
  counterpart in a port (moves between devices);
* of the port, the same; those that no compared call ran are stubs there, which `stubs` counts (one for each run of statements).

`unreached` names the functions of the original that lines are left in. `absent` are those of them that import a package which is not installed, such
as a plot: no call can run them here. They count as lines that are left; `share_installed` is the share without them. `violations` are places of
verified units that neither ran nor refuse.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import shutil
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrate_agent.agent.config.json_files import read
from migrate_agent.agent.runs.folder import RunFolder, home_of, runs
from migrate_agent.evals.bench.measure import report
from migrate_agent.evals.zoo_packages.packages import load_packages
from migrate_agent.evals.zoo_packages.zoo_run import commit_all, make_repository, migrate
from migrate_agent.tools.types import Evidence, Reach, UnitReport


@dataclass
class Statements:
    """Statements of one side, by `file:function` and digest."""

    ran: set[tuple[str, str]] = field(default_factory=set)
    idle: set[tuple[str, str]] = field(default_factory=set)

    def add(self, ran: Mapping[str, Sequence[str]], idle: Mapping[str, Sequence[str]]) -> None:
        """Count these too."""
        self.ran |= set(_flat(ran))
        self.idle |= set(_flat(idle))

    @property
    def left(self) -> set[tuple[str, str]]:
        """Those that no unit's calls ran."""
        return self.idle - self.ran

    def row(self) -> dict[str, Any]:
        """As JSON: how many there are, and how many of them ran."""
        lines = len(self.ran | self.idle)
        return {"lines": lines, "reached": len(self.ran), "share": round(len(self.ran) / max(lines, 1), 4)}


def _flat(digests: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    return ((key, digest) for key, inside in digests.items() for digest in inside)


def measured(name: str, repository: Path) -> dict[str, Any]:
    """What the last run of a repository reached. Raises `LookupError` where there was none."""
    every = runs(home_of(repository / ".git"))
    if not every:
        raise LookupError(f"{repository}: no run of migrate-agent")
    units = dict(_units(every[-1]))
    reports = [unit for unit, _ in units.values()]
    verified = [(unit, reach) for unit, reach in units.values() if unit.status == "verified" and reach is not None]
    row = counts(verified)
    return {"name": name, **row, **of_absent(row, repository), **_others(reports)}


def of_absent(row: Mapping[str, Any], repository: Path) -> dict[str, Any]:
    """The functions of the original with lines left that import a package which is not installed, with it; and the share without their lines."""
    packages = {key: absent for key in row["unreached"] if (absent := _absent_packages(repository, key))}
    absent_lines = sum(row["unreached"][key] for key in packages)
    lines, reached = row["original"]["lines"] - absent_lines, row["original"]["reached"]
    return {"absent": packages, "lines_absent": absent_lines, "share_installed": round(reached / max(lines, 1), 4)}


def _absent_packages(repository: Path, key: str) -> list[str]:
    """The packages that a function (`file:qualified name`) imports for itself, and that neither are installed nor lie in the repository."""
    path, _, owner = key.partition(":")
    body: Sequence[ast.stmt] = ast.parse((repository / path).read_text(encoding="utf-8")).body
    for part in owner.split("."):
        node = next((item for item in body if isinstance(item, (ast.ClassDef, ast.FunctionDef)) and item.name == part), None)
        if node is None:
            return []
        body = node.body
    imports = [node for statement in body for node in ast.walk(statement) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = [node.module or "" for node in imports if isinstance(node, ast.ImportFrom) and not node.level]
    names += [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    packages = dict.fromkeys(name.partition(".")[0] for name in names if name)
    return [
        name
        for name in packages
        if importlib.util.find_spec(name) is None and not [*repository.rglob(f"{name}.py"), *repository.rglob(f"{name}/")]
    ]


def counts(verified: Sequence[tuple[UnitReport, Reach]]) -> dict[str, Any]:
    """The figures of these units together."""
    original, port = Statements(), Statements()
    theirs = {name for _, reach in verified for name in reach.original.names}
    ours = {name for _, reach in verified for name in reach.names}
    for _, reach in verified:
        original.add(_within(reach.original.ran, theirs), reach.original.idle)
        port.add(_within(reach.ran, ours), reach.idle)
    left = Counter(key for key, _ in original.left)
    return {
        "verified": len(verified),
        "original": original.row(),
        "port": port.row(),
        "stubs": sum(unit.reach.get("stubs", 0) for unit, _ in verified),
        "unreached": dict(left.most_common()),
        "violations": [place for _, reach in verified for place in reach.missed],
    }


def _within(ran: Mapping[str, tuple[str, ...]], names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """What ran of these definitions (`file:name`)."""
    return {key: digests for key, digests in ran.items() if _definition(key) in names}


def _definition(key: str) -> str:
    path, _, owner = key.partition(":")
    return f"{path}:{owner.partition('.')[0]}"


def _others(reports: Iterable[UnitReport]) -> dict[str, Any]:
    tried = [unit for unit in reports if unit.status != "skipped"]
    times = [unit.seconds for unit in tried if unit.verdicts]
    left = {f"{unit.source}:{unit.name}": f"{unit.status}: {unit.reason}"[:200] for unit in tried if unit.status != "verified"}
    return {"units": len(tried), "not_verified": left, "median_seconds": round(statistics.median(times), 1) if times else None}


def _units(run: RunFolder) -> Iterator[tuple[str, tuple[UnitReport, Reach | None]]]:
    """Folder → how each unit of a run ended, and what was reached of it. The figures are those of the run's report, which holds those of all units."""
    rows = {
        f"{row['source']}:{row['name']}": row["reach"] for row in json.loads((run / "report.json").read_text(encoding="utf-8"))["units"]
    }
    for result in sorted(run.path.glob("units/*/result.json")):
        evidence, unit = result.parent / "evidence.json", read(result, UnitReport)
        reach = read(evidence, Evidence).reach if evidence.exists() else None
        yield result.parent.name, (replace(unit, reach=rows.get(unit.id, unit.reach)), reach)


def migrated(name: str, folder: Path, sandbox: str) -> Path:
    """The repository of this name below a folder, laid out and migrated where it was not before."""
    place = folder / Path(name).name
    repository = place / "repository"
    if not (place / "report.json").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _lay_out(name, repository)
        _, error = migrate(repository, place / "report.json", sandbox)
        if error:
            raise LookupError(f"{name}: the run gave no report: {error}")
    return repository


def _lay_out(name: str, repository: Path) -> None:
    package = next((package for package in load_packages() if package.name == name), None)
    if package is not None:
        make_repository(package, repository)
        return
    shutil.copytree(name, repository, ignore=shutil.ignore_patterns(".git", "*_jax", "*_jax.py", ".migrate", "__pycache__"))
    commit_all(repository)


def total(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums over repositories."""
    sides = {}
    for side in ("original", "port"):
        lines, reached = (sum(row[side][key] for row in rows) for key in ("lines", "reached"))
        sides[side] = {"lines": lines, "reached": reached, "share": round(reached / max(lines, 1), 4)}
    numbers = {key: sum(row[key] for row in rows) for key in ("units", "verified", "stubs", "lines_absent")}
    original = sides["original"]
    installed = {"share_installed": round(original["reached"] / max(original["lines"] - numbers["lines_absent"], 1), 4)}
    return {"name": "all", **numbers, **sides, **installed, "violations": sum(len(row["violations"]) for row in rows)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", help="a package of evals/zoo, or a folder with a repository")
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="where repositories and their runs lie")
    parser.add_argument("--sandbox", default="auto")
    options = parser.parse_args(arguments)
    rows = [measured(Path(name).name, migrated(name, options.keep.resolve(), options.sandbox)) for name in options.names]
    report("reach", [*rows, total(rows)])


if __name__ == "__main__":
    main()
