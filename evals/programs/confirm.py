"""The suite's own comparison of a program and its rewrite: both run in processes of their own, and nothing of the tool's judge is used.

In float64, from the same weights and the same generator, every printed number must agree to its digits, and the weights must have moved alike.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MOST_APART = 1e-4
"""Largest distance between the final values of a tensor, as a share of how far training moved all tensors of its module."""
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
SECONDS = 300.0
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Confirmed:
    """What the comparison found: why it does not confirm the rewrite (empty: it does), and seconds of torch and of JAX (NaN: unknown) from one step to
    the next, and of a step alone: its forward and backward passes and its update. `whole_run` are those of the original from its start to its end.

    A pair is not `comparable` where the original has no optimizer, so that there is no point at which to hand over weights.
    """

    problem: str
    comparable: bool = True
    torch_seconds: float = math.nan
    jax_seconds: float = math.nan
    torch_step: float = math.nan
    jax_step: float = math.nan
    whole_run: float = math.nan

    @property
    def ratio(self) -> float:
        """From step to step of the rewrite, as a multiple of torch's."""
        return self.jax_seconds / self.torch_seconds if self.torch_seconds else math.nan

    @property
    def step_alone(self) -> float:
        """A step alone, as a multiple of torch's."""
        return self.jax_step / self.torch_step if self.torch_step else math.nan


class RunError(Exception):
    """A script that does not run. One line."""


def confirm(
    original: Path, rewrite: Path, script: str, target: str, arguments: Sequence[str], folder: Path, start_folder: str = "", steps: int = 0
) -> Confirmed:
    """Compare the script below `original` with `target` below `rewrite`; copies and what they leave go below `folder`. Both run in the folder `start_folder`
    of their repository, and end after `steps` optimizer steps (0: by themselves).
    """
    try:
        return _compared(original, rewrite, (script, target), arguments, folder, start_folder, steps)
    except RunError as error:
        return Confirmed(str(error))


def _compared(
    original: Path, rewrite: Path, scripts: tuple[str, str], arguments: Sequence[str], folder: Path, start_folder: str, steps: int
) -> Confirmed:
    script, target = (os.path.relpath(path, start_folder or ".") for path in scripts)
    lines, seconds, whole_run = {}, {}, math.nan
    for mode in ("exact", "native"):
        start, out = folder / mode / "torch", folder / mode / "jax"
        for output in (start, out):
            output.mkdir(parents=True)
        began = time.monotonic()
        lines["torch", mode] = _run(
            original, ["torch_run.py", mode, steps, start, script, *arguments], folder / mode / "torch-work", start_folder
        )
        whole_run = time.monotonic() - began
        lines["jax", mode] = _run(
            rewrite, ["jax_run.py", mode, steps, start, out, target, *arguments], folder / mode / "jax-work", start_folder
        )
        seconds[mode] = [tuple(map(float, (output / "seconds.txt").read_text().split())) for output in (start, out)]
    if not [*(folder / "exact" / "torch").glob("start-*.npz")]:
        return Confirmed(
            "the original has no optimizer whose parameters belong to one module: no weights could be handed over",
            False,
            whole_run=whole_run,
        )
    problem = next(iter([*different_lines(lines["torch", "exact"], lines["jax", "exact"])]), "")
    problem = problem or next(iter([*different_weights(folder / "exact" / "torch", folder / "exact" / "jax")]), "")
    (torch_seconds, torch_step), (jax_seconds, jax_step) = seconds["native"]
    return Confirmed(problem, True, torch_seconds, jax_seconds, torch_step, jax_step, whole_run)


def _run(repository: Path, words: Sequence[object], work: Path, start_folder: str) -> list[str]:
    """The lines that a script prints, run in a folder of a copy of its repository. Raises `RunError`."""
    shutil.copytree(repository, work, ignore=shutil.ignore_patterns(".git"))
    name, *rest = map(str, words)
    # A repository that is a package is imported from its root, as where it is installed.
    environment = {
        **os.environ,
        "PYTHONPATH": str(work),
        "JAX_PLATFORMS": "cpu",
        "HOME": str(work),
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, str(HERE / name), *rest]
    try:
        done = subprocess.run(
            command, cwd=work / start_folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{name}: no end after {SECONDS:.0f} s") from None
    if done.returncode:
        raise RunError(f"{name}: {(done.stderr.strip().splitlines() or ['nothing on standard error'])[-1]}")
    return done.stdout.splitlines()


def different_lines(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    """What differs between the printed lines: their number, their text, or a number by more than one and a half of its last digits."""
    if len(ours) != len(theirs):
        yield f"{len(ours)} printed lines in torch, {len(theirs)} in JAX"
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False), 1):
        if NUMBER.sub("#", a) != NUMBER.sub("#", b) or any(map(_apart, NUMBER.findall(a), NUMBER.findall(b))):
            yield f"printed line {i}: {a!r} in torch, {b!r} in JAX"


def _apart(a: str, b: str) -> bool:
    mantissa, _, exponent = a.lower().partition("e")
    digit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])) if "." in mantissa else 0.0
    return abs(float(a) - float(b)) > max(1.5 * digit if digit >= 1e-9 else 0.0, 1e-6 * abs(float(a)))


def different_weights(torch: Path, jax: Path) -> Iterator[str]:
    """What differs between the weights that two runs ended with, in shares of how far training moved them."""
    numbers = sorted(file.name.removeprefix("end-") for file in torch.glob("end-*.npz"))
    for number in numbers:
        if not (jax / f"end-{number}").exists():
            yield f"the rewrite has no optimizer {number}"
            continue
        with np.load(torch / f"start-{number}") as start, np.load(torch / f"end-{number}") as end, np.load(jax / f"end-{number}") as got:
            if set(end) != set(got):
                yield f"other tensors: {', '.join(sorted(set(end) ^ set(got)))}"
                continue
            moved = max(float(np.max(np.abs(end[name] - start[name]), initial=0.0)) for name in end)
            for name in end:
                apart = float(np.max(np.abs(end[name] - got[name]), initial=0.0))
                if not apart <= MOST_APART * max(moved, 1e-12):
                    yield f"{name} is {apart:.2e} from torch's after training, which moved the weights by {moved:.2e}"
