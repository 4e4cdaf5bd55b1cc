"""The losses of a program and of its rewrite, step by step, as two runs from the same state had them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.programs.judge.compare import Ran
from migrate_agent.tools.programs.judge.contract import TENSORS, TRACE
from migrate_agent.tools.programs.judge.judge import CANDIDATE, ORIGINAL
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Job, Limits

PRECISIONS = {"exact": "float64", "native": "own precision"}


class CurveError(Exception):
    """A side that does not run. One line that says which and why."""


@dataclass(frozen=True)
class Sides:
    """A run of the original and one of the rewrite, in the program's own precision, from the same weights and the same generator."""

    original: Ran
    rewrite: Ran

    @property
    def losses(self) -> dict[str, list[float]]:
        """The loss of each optimizer step: `torch` and `jax`."""
        return {"torch": mean_losses(self.original), "jax": mean_losses(self.rewrite)}


def mean_losses(ran: Ran) -> list[float]:
    """The loss of each optimizer step; of several backward passes their mean."""
    return [float(np.mean(row)) for row in ran.losses if row]


def loss_curves(runs: Path) -> dict[str, dict[str, list[float]]]:
    """Precision → `torch` and `jax` → losses by step, of what the judge left in its folder; nothing of a precision that one side lacks."""
    curves = {}
    for name, precision in PRECISIONS.items():
        files = {side: runs / f"{folder}-{name}" / TRACE for side, folder in (("torch", "original"), ("jax", "candidate"))}
        if all(file.exists() for file in files.values()):
            curves[precision] = {side: mean_losses(Ran(json.loads(file.read_text()), {})) for side, file in files.items()}
    return curves


def run_both(
    program: Program,
    original: Path,
    candidate: Path,
    target: str,
    sandbox: Sandbox,
    folder: Path,
    limits: Limits,
    tell: Callable[[str], None],
) -> Sides:
    """Run the program below `original` and `target` below `candidate`. Raises `CurveError` where one does not run."""
    common = {"exact": False, "beside": {}, "steps": program.steps, "keep": [], "lines": False}
    tell("running the original")
    job = Job("original", ORIGINAL, original, {**common, **program.arguments(), "perturb": 0.0}, {}, limits)
    torch = _ran(job, sandbox, folder / "original", program.source)
    generators = [row["generator"] for row in torch.trace["optimizers"]]
    tell("running the rewrite")
    arguments = {**common, **program.arguments(target), "generators": generators, "draws": torch.trace["draws"]}
    arguments |= {"scale": 1.0, "restored": [], "schedules": []}
    start = {"start": folder / "original" / TENSORS}
    # A right program may take longer to compile than torch takes for the whole run.
    job = Job("candidate", CANDIDATE, candidate, arguments, start, replace(limits, seconds=limits.seconds + 60))
    return Sides(torch, _ran(job, sandbox, folder / "candidate", target))


def _ran(job: Job, sandbox: Sandbox, folder: Path, script: str) -> Ran:
    run = sandbox.run(job)
    try:
        if run.status != "ok":
            raise CurveError(f"{script} does not run: {run.error or run.status}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in (TRACE, TENSORS):
            shutil.copyfile(run.output / file, folder / file)
    finally:
        sandbox.release(run)
    return Ran(json.loads((folder / TRACE).read_text()), {})
