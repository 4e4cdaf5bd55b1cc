"""A package of the `zoo` suite judged in this process, by comparison in float64: quicker than the verifier, and no proof."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from flax import nnx

from migrate_agent.evals.operators.parity import compare_modules, is_float, map_tensors, randomise, set_up_jax
from migrate_agent.evals.suite import Outcome, Status
from migrate_agent.evals.zoo_packages.packages import Package
from migrate_agent.evals.zoo_packages.zoo_run import make_repository, tidiness
from migrate_agent.sandbox import open_sandbox
from migrate_agent.tools.harness.common.example_text import call_arguments, construct, in_mode, load_unit, make_namespace, seed_python
from migrate_agent.tools.harness.jax_side import module as jax_unit
from migrate_agent.tools.harness.jax_side.precision import lift_to_float64
from migrate_agent.tools.harness.torch_side.precision import exact
from migrate_agent.tools.record import record
from migrate_agent.tools.record.examples import from_config
from migrate_agent.tools.rewrite import compose, translate
from migrate_agent.tools.scan import scan
from migrate_agent.tools.scan.plan import plan
from migrate_agent.tools.types import Draft, Example, Inventory, Recording, Unit


class Call(NamedTuple):
    """A module in evaluation mode, and the arguments of its call."""

    module: torch.nn.Module
    args: Any
    kwargs: Any


@dataclass(frozen=True)
class Migrated:
    """A repository and its rewrite, both importable in this process; `double` asks for float64 throughout."""

    name: str
    root: Path
    inventory: Inventory
    recording: Recording
    draft: Draft
    double: bool = True

    @property
    def units(self) -> list[Unit]:
        """What is to be rewritten."""
        return [unit for unit in self.inventory.units if unit.strategy == "rewrite"]

    def examples(self, unit: Unit) -> list[Example]:
        """Those that reach the unit."""
        return [example for example in self.recording.examples if example.unit == unit.id]

    def original(self, unit: Unit, example: Example) -> Call:
        """The original with random parameters, as the example builds and calls it. Runs the repository's code."""
        file = next(file for file in self.inventory.files if file.path == unit.source)
        namespace = make_namespace(importlib.import_module(file.module), example)
        torch.manual_seed(0)
        with exact() if self.double else nullcontext():  # what asks for a narrower float gets float64, on both sides
            module = in_mode(construct(load_unit(file.module, unit.name), example, namespace), training=False)
        arguments = call_arguments(example, namespace)
        if self.double:
            module = module.double()
            arguments = map_tensors(lambda tensor: tensor.double() if is_float(tensor) else tensor, arguments)
        randomise(module)
        return Call(module, *arguments)

    def rewrite(self, unit: Unit, example: Example) -> nnx.Module:
        """The rewrite in evaluation mode, as the example builds it."""
        file = next(file for file in self.inventory.files if file.path == unit.source)
        built = _mirror(file.target_module, unit.name, translate(self.inventory, self.recording.observations, example), self.double)
        mode: Any = built
        mode.eval()
        return built


def migrate(name: str, root: Path, examples: Sequence[Mapping[str, Any]], folder: Path, double: bool = True) -> Migrated:
    """Scan, record and compose the git repository at `root`, and make it and its rewrite importable for the rest of the process."""
    inventory = scan(root)
    sandbox = open_sandbox("process", warn=lambda text: None)
    recording = record(inventory, from_config(inventory, examples), sandbox, folder / "recording")
    sandbox.close()
    reached = {example.unit for example in recording.examples}
    units = [unit.id for unit in plan(inventory) if unit.id in reached]
    draft = compose(inventory, recording.observations, units, examples=recording.examples)
    for path, text in draft.files.items():
        target = folder / "candidate" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    sys.path[:0] = [str(root), str(folder / "candidate")]
    if double:
        torch.set_default_dtype(torch.float64)
        set_up_jax()
        lift_to_float64()
    return Migrated(name, root, inventory, recording, draft, double)


def judge_in_process(package: Package, folder: Path) -> Iterator[Outcome]:
    """One outcome for each unit of the package, and one of the static check. Raises `PackageError`."""
    make_repository(package, folder / "repository")
    migrated = migrate(package.name, folder / "repository", package.examples, folder)
    for unit in migrated.units:
        if unit.id in package.exclude:
            yield Outcome(f"{package.name}/{unit.id}", "excluded", package.exclude[unit.id])
        else:
            yield outcome(migrated, unit)
    yield from _static(migrated)


def _static(migrated: Migrated) -> Iterator[Outcome]:
    with_holes = {hole.source for hole in migrated.draft.holes}
    unfinished = {file.target for file in migrated.inventory.files if file.path in with_holes}  # nobody would commit these
    sources = {file.target: (migrated.root / file.path).read_text(encoding="utf-8") for file in migrated.inventory.files}
    files = {name: text for name, text in migrated.draft.files.items() if name not in unfinished}
    yield from tidiness(migrated.name, files, sources)


def outcome(migrated: Migrated, unit: Unit) -> Outcome:
    """Whether the unit's rewrite gives the original's results in all examples."""
    name, examples = f"{migrated.name}/{unit.id}", migrated.examples(unit)
    if not examples:
        return Outcome(name, "refused", migrated.recording.errors.get(unit.id, "no example reaches it"))
    try:
        for example in examples:
            original, rewrite = migrated.original(unit, example), migrated.rewrite(unit, example)
            with exact():
                compare_modules(original.module, rewrite, original.args, original.kwargs)
    except Exception as error:
        holes = [f"{hole.code}: {hole.reason} | {hole.source}:{hole.span.line}: {hole.text[:120]}" for hole in migrated.draft.holes]
        status: Status = "refused" if holes else "wrong"
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}{_place(error)}"
        return Outcome(name, status, text, {"holes": holes, "example": example.init[:200]})
    return Outcome(name, "right")


def _place(error: BaseException) -> str:
    """Where in the mirror an exception came from."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/candidate/" in frame.filename]
    return f" at {frames[-1].filename.partition('/candidate/')[2]}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""


def _mirror(module: str, name: str, example: Example, exact: bool) -> nnx.Module:
    target: Any = importlib.import_module(module)
    names = {**jax_unit.make_namespace(target, {"setup": example.setup}, example.tensors, exact), "np": np, "rngs": nnx.Rngs(0)}
    for part in name.split("."):
        target = getattr(target, part)
    seed_python()
    built: nnx.Module = eval(f"_unit({example.init}\n)", {**names, "_unit": target})
    return built
