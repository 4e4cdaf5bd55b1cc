"""What both sides of a comparison are described by: scenarios with the original's results, and the candidate's answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import input_sampling, tensor_files
from migrate_agent.tools.harness.common.input_sampling import Array
from migrate_agent.tools.types import Job, Raised
from migrate_agent.tools.verify.contract.jobs import discard

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
            return {**run.result, **({"buffers": tensor_files.load(buffers)} if buffers.exists() else {})}
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

    @cached_property
    def search_start(self) -> Scenario | None:
        """The scenario whose inputs the search for the worst starts from: that of the smallest example with gradients; None where no input
        is a float."""
        moving = [
            scenario
            for scenario in self.scenarios
            if scenario.facts["role"] == "gradient"
            and scenario.name.endswith("-s0")
            and any("float" in dtype for dtype in scenario.facts["leaf_dtypes"])
        ]
        return min(moving, key=self._bytes_given, default=None)

    def _bytes_given(self, scenario: Scenario) -> int:
        files = (f"states/{scenario.facts['state']}.safetensors", f"inputs/{scenario.name}.safetensors")
        return sum((self.given / file).stat().st_size for file in files)


class CandidateFailed(Exception):
    """Raised where the candidate's process gave no result, or the candidate could not be constructed; its text says why.

    `raised` is the exception of the candidate's constructor, where that is the reason.
    """

    def __init__(self, message: str, raised: Raised | None = None) -> None:
        super().__init__(message)
        self.raised = raised


def raised_in(facts: Mapping[str, Any]) -> Raised | None:
    """The exception that a candidate's process wrote down, which may be of any form; None where it is of none that we know."""
    row = facts.get("raised")
    try:
        return Raised(str(row["type"]), str(row["message"]), str(row["file"]), int(row["line"]), str(row["code"])) if row else None
    except MALFORMED:
        return None


@dataclass(frozen=True)
class Answer:
    """What the candidate did in a scenario, or the `error` that it raised."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @property
    def error(self) -> str:
        """One line, or nothing."""
        return str(self.facts.get("error", ""))

    @property
    def raised(self) -> Raised | None:
        """The exception behind `error`."""
        return raised_in(self.facts)
