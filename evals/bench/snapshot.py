"""What the product writes and judges, kept as files, so that a change that should alter nothing can be held against it.

    python -m migrate_agent.evals.bench.snapshot write FOLDER [--jobs 2] [PACKAGE ...]
    python -m migrate_agent.evals.bench.snapshot compare BEFORE AFTER

`write` migrates packages of the zoo with the rules alone and keeps their mirrors byte for byte, with the status, check and outcome of every
verdict; of the fast subset of the corpora it keeps the verdicts. `compare` prints each difference and exits 1 where there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from migrate_agent.evals.mutation import corpus
from migrate_agent.evals.zoo_packages.packages import load_packages
from migrate_agent.evals.zoo_packages.zoo_run import branch_files, make_repository, run_repository
from migrate_agent.sandbox.process import ProcessSandbox

PACKAGES = (
    "bottleneck-transformer-pytorch conformer egnn-pytorch mingru-pytorch mlp-mixer-pytorch ncps nystrom-attention pytorch-tcn "
    "rotary-embedding-torch siren-pytorch"
).split()
"""Ten packages of the zoo that take about two minutes each or less."""

CORPUS = "corpus"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("folder", type=Path)
    write.add_argument("packages", nargs="*", default=[*PACKAGES, CORPUS], help=f"names of zoo packages, or `{CORPUS}`")
    write.add_argument("--jobs", type=int, default=2)
    compare = commands.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "write":
        with ThreadPoolExecutor(options.jobs) as pool:
            for line in pool.map(lambda name: _write(name, options.folder), options.packages):
                print(line, flush=True)
        return 0
    differences = list(compare_snapshots(options.before, options.after))
    print("\n".join(differences) or "equal")
    return 1 if differences else 0


def _write(name: str, folder: Path) -> str:
    rows, mirror = _corpus() if name == CORPUS else _package(name)
    for path, text in mirror.items():
        target = folder / name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return f"{name}: {len(rows)} units, {len(mirror)} files"


def _package(name: str) -> tuple[dict[str, Any], dict[str, str]]:
    (package,) = (package for package in load_packages() if package.name == name)
    with tempfile.TemporaryDirectory() as scratch:
        repository, report = Path(scratch) / name, Path(scratch) / "report.json"
        make_repository(package, repository)
        list(run_repository(name, repository, report, "process", package.exclude))
        result = json.loads(report.read_text(encoding="utf-8"))
        return {f"{unit['source']}:{unit['name']}": _unit(unit) for unit in result["units"]}, branch_files(repository, result["branch"])


def _unit(unit: dict[str, Any]) -> dict[str, Any]:
    return {"status": unit["status"], "verdicts": [[verdict["stage"], verdict["check"], verdict["status"]] for verdict in unit["verdicts"]]}


def _corpus() -> tuple[dict[str, Any], dict[str, str]]:
    originals = corpus.load_originals()
    cases = {case.id: case for case in corpus.load_cases()}
    rows: dict[str, Any] = {}
    with ProcessSandbox() as sandbox, tempfile.TemporaryDirectory() as scratch:
        for name in corpus.FAST:
            case = cases[name]
            evidence = corpus.verify_case(originals[case.original], case.source, sandbox, Path(scratch) / case.original)
            verdicts = [[verdict.stage, verdict.check, verdict.status] for verdict in evidence.verdicts]
            rows[name] = {"status": evidence.status, "verdicts": verdicts}
    return rows, {}


def compare_snapshots(before: Path, after: Path) -> Iterator[str]:
    """A line for each file that differs, is missing or is new."""
    old, right = _files(before), _files(after)
    for name in sorted(old.keys() | right.keys()):
        if name not in right:
            yield f"{name}: missing"
        elif name not in old:
            yield f"{name}: new"
        elif old[name] != right[name]:
            yield f"{name}: differs" + (f" ({_units(old[name], right[name])})" if name.endswith(".json") else "")


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _units(before: bytes, after: bytes) -> str:
    old, right = json.loads(before), json.loads(after)
    return ", ".join(sorted(name for name in old.keys() | right.keys() if old.get(name) != right.get(name)))


if __name__ == "__main__":
    sys.exit(main())
