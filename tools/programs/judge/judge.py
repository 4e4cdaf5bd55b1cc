"""Judges a JAX program against the PyTorch program that it claims to be: runs both in sandboxes and compares their traces."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.programs.judge.beside import Beside, Missed, missed_beside
from migrate_agent.tools.programs.judge.clipping import clipping_runs, clipping_verdict
from migrate_agent.tools.programs.judge.compare import EXACT, NATIVE_CHECKS, Pair, Ran, idle_parts, missed_lines, reach, verdict
from migrate_agent.tools.programs.judge.constructions import split_constructions
from migrate_agent.tools.programs.judge.contract import TENSORS, TRACE
from migrate_agent.tools.programs.judge.running import WORK
from migrate_agent.tools.programs.judge.variants import PLAIN, Further, Variant, VariantSearch
from migrate_agent.tools.programs.problem import problem
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.record.at_once import at_once, in_order
from migrate_agent.tools.types import Evidence, Job, Limits, Run, Verdict

KEEP = (1, 2, 3, 5, 10, 20)
ROUNDING = 2.0**-52
ORIGINAL = "migrate_agent.tools.programs.judge.original:run_original"
CANDIDATE = "migrate_agent.tools.programs.judge.candidate:run_candidate"
MOST_LEFT_BYTES = 64 * 2**20
BRIEF_SECONDS = 30.0
"""Up to how long a run of the original in float64 takes its counterpart is compiled without optimisations, which then takes longer than to run it."""


class ProgramFailedError(Exception):
    """The original does not run, so that nothing can be judged. One line that says why; `too_long` where it took more than its time."""

    def __init__(self, reason: str, too_long: bool = False) -> None:
        super().__init__(reason)
        self.too_long = too_long


class Judge:
    """Runs a program as it is, once, and any number of candidates against it.

    `root` holds the original's repository, `folder` what the runs leave, and `beside` are further files of the program's own code. Options that guard
    lines which the run does not reach are tried too.
    Raises `ProgramFailedError` where the original does not run.
    """

    def __init__(
        self,
        program: Program,
        root: Path,
        sandbox: Sandbox,
        folder: Path,
        limits: Limits,
        tell: Callable[[str], None],
        beside: Sequence[Beside] = (),
    ) -> None:
        self.beside, self.root = beside, root
        self.unrun: tuple[str, ...] = ()
        self.program, self.sandbox, self.folder, self.limits, self.tell = program, sandbox, folder, limits, tell
        tell("running the original, in float64 and in its own precision")
        began = time.monotonic()
        ways: list[dict[str, Any]] = [{"exact": True}, {"exact": True, "perturb": ROUNDING}, {"exact": False}]
        self.exact, self.moved, self.native = in_order(lambda way: self._original(root, **way), ways)
        self.brief = time.monotonic() - began < BRIEF_SECONDS
        _refuse_idle(program, self.exact)
        self.missed: tuple[list[int], list[int]] = [], []
        """The lines of the original and of the last candidate that no run reaches, once one was judged to the end."""
        self.missed_beside: tuple[Missed, ...] = ()
        """The same of the files beside the script."""
        self.idle: list[tuple[int, str]] = []
        """What changes nothing in any run of the original, and what the last candidate has not."""
        parts: list[Callable[[], Any]] = [
            lambda: clipping_runs(self.exact, lambda scale: self._scaled(root, scale)),
            lambda: tuple(self._further(root)),
        ]
        self.clipping, self.further = in_order(lambda part: part(), parts)

    def judge(self, root: Path, target: str) -> Evidence:
        """All verdicts on the program `target` in the folder `root`."""
        began = time.monotonic()
        self.tell("running the candidate, in float64 and in its own precision")
        with ThreadPoolExecutor(at_once(), thread_name_prefix="candidate") as pool:
            in_float64 = pool.submit(self._candidate, root, target, self.exact)
            natively = pool.submit(self._candidate, root, target, self.native, exact=False)
            exact, error = in_float64.result()
            if exact is None:
                return self._evidence(target, [verdict("spec", "runs", "fail", error)], began)
            pair = Pair(self.exact, self.moved, exact)
            verdicts = [verdict("spec", "runs", "pass"), *(check(pair) for check in EXACT)]
            unrun: list[Ran] = []
            if any(one.status == "fail" for one in verdicts):
                return self._evidence(target, verdicts, began)
            # The run in its own precision, which takes longest to compile, may go on beside them.
            further = pool.submit(self._options, root, target, unrun)
            clipping, options = pool.submit(self._clipping, root, target).result(), further.result()
            native, native_error = natively.result()
        verdicts += clipping
        if not any(one.status == "fail" for one in clipping):
            verdicts += options
        if any(one.status == "fail" for one in verdicts):
            return self._evidence(target, verdicts, began)
        if native is None:
            return self._evidence(target, [*verdicts, verdict("behavioural", "runs_natively", "fail", native_error)], began)
        own = Pair(self.native, self.native, native)
        verdicts += [check(pair, own) for check in NATIVE_CHECKS]
        originals, candidates = [self.exact, *(one.original for one in self.further)], [exact, *unrun]
        self.missed = missed_lines(originals, candidates)
        rows = missed_beside(self.beside, *([run.trace["beside"] for run in side] for side in (originals, candidates)))
        self.missed_beside, self.unrun = split_constructions(rows, self.root, root)
        self.idle = idle_parts(originals, candidates)
        verdicts.append(reach(self.missed, self.idle, self.missed_beside))
        return self._evidence(target, verdicts, began)

    def stage(self, root: Path, variant: Variant) -> Path:
        """Where a variant of the original in the folder `root` runs: with what the run left that came before it."""
        return self._stage(root, "original-exact", variant)

    def _scaled(self, root: Path, scale: float) -> tuple[Ran, Ran] | None:
        """The original with all gradients multiplied; `None` where it does not run so."""
        self.tell(f"running the original with gradients times {scale:.3g}")
        ran, moved = in_order(lambda perturb: self._try(root, Variant(scale=scale), perturb), (False, True))
        return (ran, moved) if ran is not None and moved is not None else None

    def _try(self, root: Path, variant: Variant, perturb: bool) -> Ran | None:
        """A variant of the original, or `None` where it does not run so."""
        try:
            return self._original(root, True, ROUNDING if perturb else 0.0, variant)
        except ProgramFailedError:
            return None

    def _further(self, root: Path) -> Iterator[Further]:
        """Runs that reach lines which the plain run does not."""

        def run(variant: Variant) -> tuple[Ran | None, Ran | None]:
            self.tell(f"running the original {variant.name}")
            ran, moved = in_order(lambda perturb: self._try(root, variant, perturb), (False, True))
            return ran, moved

        yield from VariantSearch(self.program, (root / self.program.source).read_text(encoding="utf-8-sig"), self.exact, run).variants()

    def _clipping(self, root: Path, target: str) -> list[Verdict]:
        """What is seen where the bounds of clipping matter; nothing of a program that clips nothing."""
        if not any(event["kind"] == "clip" for event in self.exact.trace["events"]):
            return []
        for one in self.clipping.runs:
            self.tell(f"running the candidate with gradients times {one.scale:.3g}")
        runs = [self._candidate(root, target, one.original, Variant(scale=one.scale)) for one in self.clipping.runs]
        return [clipping_verdict(self.clipping, [error if ran is None else ran for ran, error in runs])]

    def _options(self, root: Path, target: str, runs: list[Ran]) -> list[Verdict]:
        """What is seen with further options; the candidate's runs are appended to `runs`."""
        for ended in dict.fromkeys(one.variant.after for one in self.further if one.variant.after is not None and one.variant.after.steps):
            ran, error = self._candidate(root, target, self.exact, ended)
            if ran is None:
                return [verdict("numeric", "options_fp64", "fail", f"a run of {ended.steps} steps: {error}")]
        for one in self.further:
            name = one.variant.name
            self.tell(f"running the candidate {name}")
            ran, error = self._candidate(root, target, one.original, one.variant)
            if ran is None:
                return [verdict("numeric", "options_fp64", "fail", f"{name}: {error}")]
            runs.append(ran)
            bad = next((v for v in (check(Pair(one.original, one.moved, ran)) for check in EXACT) if v.status != "pass"), None)
            if bad is not None:
                return [verdict("numeric", "options_fp64", bad.status, f"{name}: {bad.detail}", bad.measured, bad.limit)]
        return [verdict("numeric", "options_fp64", "pass", "; ".join(one.variant.name for one in self.further))] if self.further else []

    def _evidence(self, target: str, verdicts: list[Verdict], began: float) -> Evidence:
        notes = tuple(f"{name} was called by no run: it constructs a module in the original's own words" for name in self.unrun)
        return Evidence(self.program.source, tuple(verdicts), time.monotonic() - began, notes)

    def _original(self, root: Path, exact: bool, perturb: float = 0.0, variant: Variant = PLAIN) -> Ran:
        arguments = {
            **self.program.arguments(options=variant.options.split(), without=variant.without),
            "beside": {file.source: list(file.names) for file in self.beside},
            "exact": exact,
            "perturb": perturb,
            "scale": variant.scale,
            "later": variant.after is not None,
            "lines": exact and not perturb and not variant.steps and variant.scale == 1.0,
            "steps": variant.steps or self.program.steps,
            "keep": list(KEEP),
        }
        name = f"original-{'exact' if exact else 'native'}{'-moved' if perturb else ''}"
        run = self.sandbox.run(Job("original", ORIGINAL, self._stage(root, name, variant), arguments, {}, self.limits))
        if run.status != "ok":
            raise ProgramFailedError(f"{self.program.source} does not run: {problem(run)}", run.status == "timeout")
        return self._kept(run, name + variant.folder)

    def _candidate(self, root: Path, target: str, of: Ran, variant: Variant = PLAIN, exact: bool = True) -> tuple[Ran | None, str]:
        arguments = {
            **self.program.arguments(target, variant.options.split(), variant.without),
            "beside": {file.target: list(file.names) for file in self.beside},
            "exact": exact,
            "quick": exact and self.brief,
            "scale": variant.scale,
            "later": variant.after is not None,
            "lines": exact and not variant.steps and variant.scale == 1.0,
            "steps": variant.steps or self.program.steps,
            "keep": list(KEEP),
            "generators": [row["generator"] for row in of.trace["optimizers"]],
            "draws": of.trace["draws"],
            "schedules": [{**row, "rates": len(row["rates"])} for row in of.trace["schedules"]],
            "restored": _restored(of, self.exact) if variant.after else [],
        }
        # The candidate gets the weights that modules and training begin with, and nothing of what the original made of them.
        start = {name: value for name, value in of.tensors.items() if name.startswith(("start/", "made/"))}
        name = f"candidate-{'exact' if exact else 'native'}"
        path = self.folder / f"start-{name}{variant.folder}.safetensors"
        _save(start, path)
        # A right program may take longer to compile than torch takes for the whole run.
        limits = replace(self.limits, seconds=self.limits.seconds + 60)
        run = self.sandbox.run(Job("candidate", CANDIDATE, self._stage(root, name, variant), arguments, {"start": path}, limits))
        if run.status != "ok":
            return None, problem(run)
        return self._kept(run, name + variant.folder), ""

    def _stage(self, root: Path, name: str, variant: Variant) -> Path:
        """The repository to run in: with what the run of this name left that comes before the variant, if one does."""
        if variant.after is None:
            return root
        folder = self.folder / f"{name}{variant.folder}-root"
        # A worker of the sandbox may still show the folder: it stays the same one.
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(root, folder, symlinks=True, dirs_exist_ok=True)
        files = self.folder / f"{name}{variant.after.folder}" / WORK
        if files.is_dir():
            shutil.copytree(files, folder, dirs_exist_ok=True)
        return folder

    def _kept(self, run: Run, name: str) -> Ran:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in (TRACE, TENSORS):
            shutil.copyfile(run.output / file, folder / file)
        (folder / "log.txt").write_text(run.log)
        ran = Ran(json.loads((folder / TRACE).read_text(encoding="utf-8-sig")), load_file(str(folder / TENSORS)))
        _keep_files(run.output / WORK, ran.trace["files"], folder / WORK)
        self.sandbox.release(run)
        return ran


def _refuse_idle(program: Program, ran: Ran) -> None:
    """Refuse a run of which nothing can be compared. Raises `ProgramFailedError`."""
    if not ran.trace["steps"]:
        raise ProgramFailedError(f"{program.source} ends before one step of an optimizer: give it options that let it train")
    first = next((row for row in ran.losses if row), [])
    # Every program whose loss is not a number is like every other.
    if first and not all(map(math.isfinite, first)):
        raise ProgramFailedError(f"{program.source}: its loss is {first[0]} from the first step on, so that nothing can be compared")


def _keep_files(work: Path, names: list[str], folder: Path) -> None:
    """Copy the files that a run left, where they are not too large."""
    files = [name for name in names if (work / name).is_file() and not (work / name).is_symlink()]
    if sum((work / name).stat().st_size for name in files) > MOST_LEFT_BYTES:
        return
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(work / name, folder / name)


def _restored(after: Ran, plain: Ran) -> list[int]:
    """The optimizers of a run whose modules had other weights at their construction than in a plain run: a file's."""
    numbers = {int(name.split("/")[1]) for name in after.tensors if name.startswith("start/")}

    def same(number: int) -> bool:
        names = [name for name in after.tensors if name.startswith(f"start/{number}/")]
        return all(name in plain.tensors and (after.tensors[name] == plain.tensors[name]).all() for name in names)

    return sorted(number for number in numbers if not same(number))


def _save(tensors: Mapping[str, Any], path: Path) -> None:
    from safetensors.numpy import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(dict(tensors), str(path))
