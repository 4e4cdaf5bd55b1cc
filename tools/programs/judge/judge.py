"""Judges a JAX program against the PyTorch program that it claims to be: runs both in sandboxes and compares their traces."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.programs.judge.compare import EXACT, NATIVE_CHECKS, Pair, Ran, verdict
from migrate_agent.tools.programs.judge.contract import TENSORS, TRACE
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Evidence, Job, Limits, Run, Verdict

KEEP = (1, 2, 3, 5, 10, 20)
ROUNDING = 2.0**-52
ORIGINAL = "migrate_agent.tools.programs.judge.original:run_original"
CANDIDATE = "migrate_agent.tools.programs.judge.candidate:run_candidate"


class ProgramFailedError(Exception):
    """The original does not run, so that nothing can be judged. One line that says why."""


class Judge:
    """Runs a program as it is, once, and any number of candidates against it.

    `root` holds the original's repository and `folder` what the runs leave. Raises `ProgramFailedError` where the original does not run.
    """

    def __init__(self, program: Program, root: Path, sandbox: Sandbox, folder: Path, limits: Limits, tell: Callable[[str], None]) -> None:
        self.program, self.sandbox, self.folder, self.limits, self.tell = program, sandbox, folder, limits, tell
        tell("running the original in float64")
        self.exact = self._original(root, exact=True)
        self.moved = self._original(root, exact=True, perturb=ROUNDING)
        tell("running the original in its own precision")
        self.native = self._original(root, exact=False)
        if not self.exact.trace["steps"]:
            raise ProgramFailedError(f"{program.source} ends before one step of an optimizer: give it options that let it train")

    def judge(self, root: Path, target: str) -> Evidence:
        """All verdicts on the program `target` in the folder `root`."""
        began = time.monotonic()
        self.tell("running the candidate in float64")
        exact, error = self._candidate(root, target, True)
        if exact is None:
            return self._evidence(target, [verdict("spec", "runs", "fail", error)], began)
        pair = Pair(self.exact, self.moved, exact)
        verdicts = [verdict("spec", "runs", "pass"), *(check(pair) for check in EXACT)]
        if any(one.status == "fail" for one in verdicts):
            return self._evidence(target, verdicts, began)
        self.tell("running the candidate in its own precision")
        native, error = self._candidate(root, target, False)
        if native is None:
            return self._evidence(target, [*verdicts, verdict("behavioural", "runs_natively", "fail", error)], began)
        own = Pair(self.native, self.native, native)
        return self._evidence(target, [*verdicts, *(check(pair, own) for check in NATIVE_CHECKS)], began)

    def _evidence(self, target: str, verdicts: list[Verdict], began: float) -> Evidence:
        return Evidence(self.program.source, tuple(verdicts), time.monotonic() - began)

    def _original(self, root: Path, exact: bool, perturb: float = 0.0) -> Ran:
        arguments = {
            "command": list(self.program.command),
            "exact": exact,
            "perturb": perturb,
            "steps": self.program.steps,
            "keep": list(KEEP),
        }
        run = self.sandbox.run(Job("original", ORIGINAL, root, arguments, {}, self.limits))
        if run.status != "ok":
            raise ProgramFailedError(f"{self.program.source} does not run: {_problem(run)}")
        return self._kept(run, f"original-{'exact' if exact else 'native'}{'-moved' if perturb else ''}")

    def _candidate(self, root: Path, target: str, exact: bool) -> tuple[Ran | None, str]:
        of = self.exact if exact else self.native
        generators = [row["generator"] for row in of.trace["optimizers"]]
        command = self.program.with_script(target)
        arguments = {"command": command, "exact": exact, "steps": self.program.steps, "keep": list(KEEP), "generators": generators}
        arguments["draws"] = of.trace["draws"]
        # The candidate gets the weights that training begins with, and nothing of what the original made of them.
        start = {name: value for name, value in of.tensors.items() if name.startswith("start/")}
        path = self.folder / "start.safetensors"
        _save(start, path)
        # A right program may take longer to compile than torch takes for the whole run.
        limits = replace(self.limits, seconds=self.limits.seconds + 60)
        run = self.sandbox.run(Job("candidate", CANDIDATE, root, arguments, {"start": path}, limits))
        if run.status != "ok":
            return None, _problem(run)
        return self._kept(run, f"candidate-{'exact' if exact else 'native'}"), ""

    def _kept(self, run: Run, name: str) -> Ran:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in (TRACE, TENSORS):
            shutil.copyfile(run.output / file, folder / file)
        (folder / "log.txt").write_text(run.log)
        self.sandbox.release(run)
        return Ran(json.loads((folder / TRACE).read_text()), load_file(str(folder / TENSORS)))


def _problem(run: Run) -> str:
    return run.error or {"timeout": "it takes longer than the limit", "memory": "it needs more memory than the limit"}.get(
        run.status, run.status
    )


def _save(tensors: Mapping[str, Any], path: Path) -> None:
    from safetensors.numpy import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(dict(tensors), str(path))
