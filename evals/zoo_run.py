"""One package of the `zoo` suite: laid out as a git repository, migrated, judged."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from flax import nnx

from migrate_agent.evals.packages import Package, cache_folder, lay_out
from migrate_agent.evals.parity import compare_modules, is_float, map_tensors, randomise, set_up_jax
from migrate_agent.evals.suite import Outcome, Status
from migrate_agent.evals.tidiness import untidy
from migrate_agent.sandbox import open_sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.evaluate import call_arguments, construct, load_unit, make_namespace
from migrate_agent.tools.record.examples import from_config
from migrate_agent.tools.rewrite import compose, translate
from migrate_agent.tools.scan import plan, scan
from migrate_agent.tools.types import Draft, Example, Inventory, Recording, Unit
from migrate_agent.tools.verify.jax_modes import lift_to_float64
from migrate_agent.tools.verify.torch_modes import exact

GIT = ["git", "-c", "user.name=zoo", "-c", "user.email=zoo@example.invalid", "-c", "commit.gpgsign=false"]
CLI = "from migrate_agent.agent.cli import main; main()"
STATUS: Mapping[str, Status] = {"verified": "right", "failed": "wrong", "unverified": "refused", "skipped": "excluded"}


def make_repository(package: Package, folder: Path) -> None:
    """The package as a git repository of one commit, with its `migrate.toml`. Raises `PackageError`."""
    lay_out(package, folder, cache_folder())
    (folder / "migrate.toml").write_text("\n".join(_example_text(row) for row in package.examples), encoding="utf-8")
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", package.name]):
        subprocess.run([*GIT, *command], cwd=folder, check=True)


def _example_text(row: Mapping[str, Any]) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in row.items() if key != "domain"]
    if domain := row.get("domain"):
        lines.append(f"domain = {{ min = {domain['min']}, max = {domain['max']} }}")
    return "\n".join(["[[example]]", *lines, ""])


def verified(package: Package, folder: Path, sandbox: str) -> Iterator[Outcome]:
    """The command line's own judgement: `migrate-agent run --yes --no-llm`, one outcome for each unit of its report."""
    make_repository(package, folder / "repository")
    report = folder / "report.json"
    command = [sys.executable, "-c", CLI, "run", "--repo", str(folder / "repository"), "--yes", "--no-llm"]
    done = subprocess.run([*command, "--sandbox", sandbox, "--report", str(report)], capture_output=True, text=True, check=False)
    if not report.exists():
        last = done.stderr.strip().splitlines()[-1:] or ["nothing on standard error"]
        yield Outcome(package.name, "wrong", f"the run gave no report: {last[0]}")
        return
    rows = json.loads(report.read_text(encoding="utf-8"))
    yield from (_outcome(package, row) for row in rows["units"])
    sources = {unit["target"]: (folder / "repository" / unit["source"]).read_text(encoding="utf-8") for unit in rows["units"]}
    yield from _tidiness(package.name, _branch_files(folder / "repository", rows["branch"]), sources)


def _outcome(package: Package, row: Mapping[str, Any]) -> Outcome:
    unit = f"{row['source']}:{row['name']}"
    if unit in package.exclude:
        return Outcome(f"{package.name}/{unit}", "excluded", package.exclude[unit])
    bad = [verdict for verdict in row["verdicts"] if verdict["status"] != "pass"]
    holes = [f"{hole['code']}: {hole['reason']}" for hole in row.get("holes", [])]
    reasons = [f"{verdict['check']}: {verdict['detail']}" for verdict in bad] + holes + [row.get("reason", "")]
    reason = "" if row["status"] == "verified" else next((text for text in reasons if text), "no reason given")
    return Outcome(f"{package.name}/{unit}", STATUS[row["status"]], reason[:500], {"seconds": row["seconds"]})


def _branch_files(repository: Path, branch: str) -> dict[str, str]:
    """The Python files that the branch added."""
    names = _git(repository, "diff", "--name-only", "--diff-filter=A", f"HEAD...{branch}").split()
    return {name: _git(repository, "show", f"{branch}:{name}") for name in names if name.endswith(".py")}


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=True).stdout


def _tidiness(package: str, files: Mapping[str, str], sources: Mapping[str, str]) -> Iterator[Outcome]:
    found = untidy(files, sources)
    status: Status = "untidy" if found else "tidy"
    yield Outcome(f"{package}/static check", status, "; ".join(found[:5])[:500], {"files": len(files), "untidy": found})


def quick(package: Package, folder: Path) -> Iterator[Outcome]:
    """Scan, record, compose, and compare forward and gradients of each unit in this process, without sandbox or verifier."""
    root = folder / "repository"
    make_repository(package, root)
    inventory = scan(root)
    sandbox = open_sandbox("process", warn=lambda text: None)
    recording = record(inventory, from_config(inventory, package.examples), sandbox, folder / "recording")
    sandbox.close()
    units = [unit for unit in inventory.units if unit.strategy == "rewrite"]
    reached = {example.unit for example in recording.examples}
    wanted = [unit.id for unit in plan(inventory) if unit.id in reached]
    draft = compose(inventory, recording.observations, wanted, examples=recording.examples)
    for name, text in draft.files.items():
        path = folder / "candidate" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.path[:0] = [str(root), str(folder / "candidate")]
    torch.set_default_dtype(torch.float64)
    set_up_jax()
    lift_to_float64()
    for unit in units:
        if unit.id in package.exclude:
            yield Outcome(f"{package.name}/{unit.id}", "excluded", package.exclude[unit.id])
        else:
            yield _quick_outcome(package.name, unit, inventory, recording, draft)
    sources = {file.target: (root / file.path).read_text(encoding="utf-8") for file in inventory.files}
    with_holes = {hole.source for hole in draft.holes}
    unfinished = {file.target for file in inventory.files if file.path in with_holes}  # nobody would commit these
    yield from _tidiness(package.name, {name: text for name, text in draft.files.items() if name not in unfinished}, sources)


def _quick_outcome(package: str, unit: Unit, inventory: Inventory, recording: Recording, draft: Draft) -> Outcome:
    name = f"{package}/{unit.id}"
    examples = [example for example in recording.examples if example.unit == unit.id]
    if not examples:
        return Outcome(name, "refused", recording.errors.get(unit.id, "no example reaches it"))
    try:
        for example in examples:
            _compare(unit, example, inventory, recording)
    except Exception as error:
        holes = [f"{hole.code}: {hole.reason} | {hole.source}:{hole.span.line}: {hole.text[:120]}" for hole in draft.holes]
        status: Status = "refused" if holes else "wrong"
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}{_place(error)}"
        return Outcome(name, status, text, {"holes": holes, "example": example.init[:200]})
    return Outcome(name, "right")


def _place(error: BaseException) -> str:
    """Where in the mirror an exception came from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/candidate/" in frame.filename]
    return f" at {frames[-1].filename.partition('/candidate/')[2]}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""


def _compare(unit: Unit, example: Example, inventory: Inventory, recording: Recording) -> None:
    file = next(file for file in inventory.files if file.path == unit.source)
    namespace = make_namespace(importlib.import_module(file.module), example)
    torch.manual_seed(0)
    with exact():  # what asks for a narrower float gets float64, on both sides
        original = construct(load_unit(file.module, unit.name), example, namespace).double().eval()
    randomise(original)
    args, kwargs = map_tensors(lambda tensor: tensor.double() if is_float(tensor) else tensor, call_arguments(example, namespace))
    rewrite = _mirror(file.target_module, unit.name, translate(inventory, recording.observations, example))
    mode: Any = rewrite
    mode.eval()
    with exact():
        compare_modules(original, rewrite, args, kwargs)


def _mirror(module: str, name: str, example: Example) -> nnx.Module:
    import jax
    import jax.numpy as jnp
    import numpy as np

    found: Any = importlib.import_module(module)
    names = {**vars(found), "nnx": nnx, "jax": jax, "jnp": jnp, "np": np, "rngs": nnx.Rngs(0)}
    exec(example.setup, names)
    for part in name.split("."):
        found = getattr(found, part)
    built: nnx.Module = eval(f"_unit({example.init}\n)", {**names, "_unit": found})
    return built
