"""What the original did: its scenarios and training curves, in memory, and how rounding noise moves them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import input_sampling, tolerances
from migrate_agent.tools.harness.common import tensor_files as arrays
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.harness.torch_side.line_coverage import Lines
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Run, SourceFile, Unit
from migrate_agent.tools.verify.report.notes import UNDETERMINED

SIDE = "migrate_agent.tools.verify"
UNKNOWN = (float("inf"), float("inf"))
"""The noise of what does not run with noise: then only what no noise excuses is wrong."""
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError)
"""What a check may run into where the candidate's process wrote a result of another form."""


class OriginalFailed(Exception):
    """Raised where the original gives nothing to compare with; its text says why."""


class Lost(OriginalFailed):
    """Raised where the sandbox lost a job of either side, which says nothing about the code."""


@dataclass
class Noise:
    """How far rounding noise moves the original's results, found out where a comparison needs to know: most agree far more closely.

    One job for the scenario that something first asks of and those that are `likely` to be asked of, one for all others once one of them is,
    and one for the training curves. `job` says which unit; `scenarios` are the facts of those whose noise is not known; `curves` describes the
    training, where there is one.
    """

    job: Job
    sandbox: Sandbox
    scenarios: Sequence[Mapping[str, Any]]
    curves: Mapping[str, Any] | None
    likely: Callable[[], Collection[str]] = tuple
    _told: dict[str, Any] = field(default_factory=dict, repr=False)

    def of_scenario(self, name: str) -> Mapping[str, Any]:
        """`noise` by key (None of what does not run with noise) and the `undecided` keys. Raises `KeyError`, `OriginalFailed`."""
        if name not in self._told:
            wanted = {facts["name"] for facts in self.scenarios} if self._told else {name, *self.likely()}
            kept = ("name", "label", "example", "role", "mode", "gradient", "state", "drawing", "runs")
            asked = [{key: facts[key] for key in kept} for facts in self.scenarios if facts["name"] in wanted - {*self._told}]
            self._told |= self._run({"scenarios": asked, "curves": None})
        found: Mapping[str, Any] = self._told[name]
        return found

    @cached_property
    def of_curves(self) -> Mapping[str, Any]:
        """Losses with noise, by optimiser and kind; `buffers` are those after the steps of SGD. Raises `OriginalFailed`."""
        return self._run({"scenarios": [], "curves": self.curves})

    def _run(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        run = self.sandbox.run(replace(self.job, arguments={**self.job.arguments, **asked}))
        try:
            if run.status != "ok":
                raise OriginalFailed(f"the original ended with {run.status} where rounding noise was added: {run.error}")
            buffers = run.output / "trained.safetensors"
            return {**run.result, **({"buffers": arrays.load(buffers)} if buffers.exists() else {})}
        finally:
            discard(self.sandbox, run)


@dataclass(frozen=True)
class Scenario:
    """What the original did: `facts` (name, role, mode, tree, draws, …) and its arrays by key. `further` tells the noise that the facts do not."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]
    further: Noise | None = None

    @property
    def name(self) -> str:
        """Its name, which both sides use for files."""
        return str(self.facts["name"])

    def noise(self, key: str) -> tuple[float, float]:
        """RMS and largest change by rounding noise, absolute. Raises `OriginalFailed`."""
        told = self._told("noise", {})
        low, high = UNKNOWN if told is None else told.get(key, (0.0, 0.0))
        return float(low), float(high)

    def undecided(self, key: str) -> bool:
        """Whether an array is not to be compared: it drowns in noise, or is a gradient at a jump. Raises `OriginalFailed`."""
        may_be = self.facts.get("role") == "gradient-edge" or self.facts.get("label") in input_sampling.DROWNING
        return may_be and key in self._told("undecided", ())

    def _told(self, what: str, otherwise: Any) -> Any:
        if what in self.facts or self.further is None:
            return self.facts.get(what, otherwise)
        return self.further.of_scenario(self.name)[what]


@dataclass
class Expectations:
    """The original's results, in memory: they lie in no file while a candidate runs. `given` is the folder that the candidate gets.

    `examples` are those that ran (`index` says which; `changes` what of the constructor's arguments is another), `errors` tells of the others.
    `captured` keeps the calls of submodules, by scenario and what was looked at, once a failure was to be placed (`localise`).
    """

    examples: Sequence[Mapping[str, Any]]
    errors: Sequence[str]
    scenarios: Sequence[Scenario]
    initial: Mapping[int, Mapping[str, Array]]
    """Fresh values by name, of the examples that are constructed each in another way."""
    given: Path
    peak_memory_bytes: int = 0
    captured: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)
    trained: Mapping[str, Array] = field(default_factory=dict)
    """The buffers after the steps of a training curve."""
    noise: Noise | None = None
    unrun: str = ""
    """What of the class no example runs, in words."""


def source_file(inventory: Inventory, unit: Unit) -> SourceFile:
    """The inventory's entry for the unit's file. Raises `KeyError`."""
    for file in inventory.files:
        if file.path == unit.source:
            return file
    raise KeyError(unit.source)


def texts(example: Example, changes: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """An example as JSON; with what of its constructor's arguments is changed."""
    domain = list(example.domain) if example.domain else None
    given = {"init": example.init, "call": example.call, "setup": example.setup, "train": example.train, "domain": domain}
    return {**given, "changes": dict(changes)} if changes else given


def tensor_inputs(examples: Sequence[Example]) -> dict[str, Path]:
    """The recorded tensors as inputs of a job."""
    return {f"tensors{index}": example.tensors for index, example in enumerate(examples) if example.tensors is not None}


def discard(sandbox: Sandbox, run: Run) -> None:
    """Remove a run's files."""
    release = getattr(sandbox, "release", None)
    if release is not None:
        release(run)
    else:
        shutil.rmtree(run.output, ignore_errors=True)


def expectations(
    unit: Unit,
    examples: Sequence[Example],
    original: Path,
    inventory: Inventory,
    sandbox: Sandbox,
    folder: Path,
    job_limits: Limits,
    seed: int = 0,
) -> Expectations:
    """Run the original. `folder/given` afterwards holds what candidates get. Raises `OriginalFailed`."""
    file = source_file(inventory, unit)
    taken = [texts(example) for example in examples[: tolerances.MAX_EXAMPLES]]
    arguments = {"module": file.module, "name": unit.name, "examples": taken, "seed": seed}
    job = Job("original", f"{SIDE}.original.job:run", original / file.import_root, arguments, tensor_inputs(examples), job_limits)
    beside = replace(job, entry=f"{SIDE}.original.job:configured")
    runs: list[Run] = []
    try:
        with ThreadPoolExecutor(1) as pool:
            further = pool.submit(sandbox.run, beside)
            runs.append(sandbox.run(job))
        runs.append(further.result())
        _say_whether_it_runs(runs[0])
        first = {"first": runs[0].result["examples"][0]["index"], "number": len(runs[0].result["examples"])}
        if runs[1].status == "ok" and any(runs[1].result[key] != value for key, value in first.items()):
            runs.append(sandbox.run(replace(beside, arguments={**arguments, **first})))
        return _collect(runs[0], runs[-1], folder, examples, job, sandbox)
    finally:
        for run in runs:
            discard(sandbox, run)


def _say_whether_it_runs(run: Run) -> None:
    """Raises `OriginalFailed` where it does not."""
    if run.status != "ok":
        raise OriginalFailed(f"the original ended with {run.status}: {run.error}")
    if not run.result["scenarios"]:
        raise OriginalFailed("the original does not run: " + ("; ".join(run.result["errors"]) or "there is no example"))


def _collect(run: Run, further: Run, folder: Path, given_examples: Sequence[Example], job: Job, sandbox: Sandbox) -> Expectations:
    """What a run of the examples gave, and a further one of other configurations."""
    examples, scenarios, lines = run.result["examples"], run.result["scenarios"], Lines(job.arguments["name"], job.root)
    lines.add(run.result["lines"])
    outputs, given = [run.output], folder / "given"
    if further.status == "lost":
        raise Lost(f"the run of other configurations was lost: {further.error}")
    wrong = further.result.get("error") if further.status == "ok" else f"{UNDETERMINED}: their run ended with {further.status}"
    if wrong:
        examples[0]["skipped"].append(f"other configurations ({wrong})")
    else:
        examples, scenarios = [*examples, *further.result["examples"]], [*scenarios, *further.result["scenarios"]]
        lines.add(further.result["lines"])
        outputs.append(further.output)
    shutil.rmtree(given, ignore_errors=True)
    for output in outputs:
        if (output / "given").is_dir():
            shutil.copytree(output / "given", given, dirs_exist_ok=True)
    expected = {file.name: file for output in outputs for file in (output / "expected").glob("*.safetensors")}
    noise = _noise([given_examples[item["index"]] for item in examples], examples, scenarios, given, job, sandbox)
    loaded = [Scenario(facts, arrays.load(expected[f"{facts['name']}.safetensors"]), noise) for facts in scenarios]
    initial = {
        number: arrays.load(expected[name]) for number in range(len(examples)) if (name := f"initial-{number}.safetensors") in expected
    }
    kept = arrays.load(expected["trained.safetensors"]) if "trained.safetensors" in expected else {}
    peak, unrun = max(run.peak_memory_bytes, further.peak_memory_bytes), lines.missed(run.result["lines"]["file"])
    return Expectations(examples, run.result["errors"], loaded, initial, given, peak, trained=kept, noise=noise, unrun=unrun)


def _noise(
    examples: Sequence[Example],
    described: Sequence[Mapping[str, Any]],
    scenarios: Sequence[Mapping[str, Any]],
    given: Path,
    job: Job,
    sandbox: Sandbox,
) -> Noise:
    """What asks for the noise of these scenarios, where it is not among their facts."""
    arguments = {**job.arguments, "examples": [texts(example, item["changes"]) for example, item in zip(examples, described, strict=True)]}
    asking = replace(job, entry=f"{SIDE}.original.noise:run", arguments=arguments, inputs={"given": given, **tensor_inputs(examples)})
    return Noise(asking, sandbox, [facts for facts in scenarios if "noise" not in facts], described[0].get("curves"))
