"""What both sides of a comparison are described by: scenarios with the original's results, and the candidate's answers.

The members of `Role` are the map from who makes a scenario to who reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.harness.common import tensor_files, tolerances
from migrate_agent.tools.harness.common.conditions import AS_MADE, Conditions
from migrate_agent.tools.harness.common.input_sampling import ONE_INPUT, Array, Extreme
from migrate_agent.tools.harness.common.random_streams import USUAL, Drawing
from migrate_agent.tools.harness.common.reach import Reached
from migrate_agent.tools.types import Job, Raised
from migrate_agent.tools.verify.contract.jobs import discard

Mode = Literal["train", "eval"]
CALLED = (
    "name",
    "extreme",
    "example",
    "role",
    "mode",
    "gradient",
    "state",
    "drawing",
    "conditions",
    "runs",
    "native",
    "narrow",
    "before",
    "prior",
)
"""The fields of a scenario that say how its call is made again with noise."""
NATIVE_STAGES = (range(tolerances.NOISE_RUNS_NATIVE), range(tolerances.NOISE_RUNS_NATIVE, tolerances.NOISE_RUNS_GRADIENT))
"""The numbers of the runs with native noise, by stage: kinks behind one layer are crossed seldom, so gradients that need it get more."""
ROUGH_CURVES = tuple(f"rough native {number}" for number in range(tolerances.NOISE_RUNS_NATIVE))
"""Kinds of curves with the rounding of native dtypes. A loss is one number, in which roundings may cancel: so there are several."""
HELD = ("left/", "held/")
"""Kinds of arrays in plain attributes: those that the call set, and those that it found there."""
UNKNOWN = (float("inf"), float("inf"))
"""The noise of what does not run with noise: then only what no noise excuses is wrong."""
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError)
"""What a check may run into where the candidate's process wrote a result of another form."""


class OriginalFailed(Exception):
    """Raised where the original gives nothing to compare with; its text says why."""


class Lost(OriginalFailed):
    """Raised where the sandbox lost a job of either side, which says nothing about the code."""


class Exhausted(OriginalFailed):
    """Raised where a job of either side ended by time, memory or disk: what it would have given is not known."""


class NotCompiled(OriginalFailed):
    """Raised where XLA itself failed on a program of the candidate: what that would have given is not known."""


EXHAUSTED = ("timeout", "memory", "disk")
"""Statuses of a `Run` that ended so."""


class Role(StrEnum):
    """What a scenario is for. Each member says which module makes it, and which checks read it."""

    SEED = "seed"
    """An evaluation pass with random parameters, buffers and inputs. Made in `original/scenarios/menu.py`; read by `forward_fp64`,
    `forward_fp32`, `forward_bf16`, `buffers`, `output_tree`, `randomness`, `arguments_kept`, `compiles_once`, and by `full_size` for its example."""
    GRADIENT = "gradient"
    """A forward and backward pass, in training mode where the unit trains. Made in `original/scenarios/menu.py`; read by `training_fp64`,
    `training_native`, `gradients_inputs`, `gradients_parameters`, `gradients_native`, `buffers`, `output_tree`, `randomness`, `arguments_kept`,
    `dropout`; by `gradients_edges` for the usual size, by `worst_input` as a start, and by `curves_fp64`, `curves_fp32` and `curves_buffers` as batches."""
    GRADIENT_SHAPE = "gradient-shape"
    """Gradients at another batch size. Made in `original/scenarios/sizes.py`; read by `gradients_inputs` and `gradients_parameters`. A
    candidate is asked for it only where it defines gradients of its own, since only those can be right for some sizes alone."""
    GRADIENT_EDGE = "gradient-edge"
    """Gradients on edge inputs. Made in `original/scenarios/menu.py`; read by `gradients_edges`."""
    EDGE = "edge"
    """An evaluation pass on zeros, tiny, large, negative and equal inputs, and on numbers of the code. Made in
    `original/scenarios/menu.py`; read by `edges_fp64`, `edges_fp32`, `compiles_once`."""
    NONFINITE = "nonfinite"
    """An evaluation pass on NaN and infinities. Made in `original/scenarios/menu.py`; read by `nonfinite`."""
    SHAPE = "shape"
    """Another batch size or length. Made in `original/scenarios/sizes.py`; read by `shapes_fp64`, `forward_fp32`, `buffers`, `output_tree`,
    `randomness`, `compiles_once`."""
    RANK = "rank"
    """One more axis in front. Made in `original/scenarios/sizes.py`; read by `shapes_fp64`. A refusal is a note."""
    LONG = "long"
    """Inputs just longer than a number of the code. Made in `original/scenarios/long_inputs.py`; read by `shapes_fp64`, `forward_fp32` and
    `compiles_once`. A refusal on purpose is a note."""
    AGAIN = "again"
    """A second call of the same module, or a call after one of another method. Made in `original/scenarios/menu.py` and
    `original/scenarios/call_order.py`; read by `second_call`."""
    AGAIN_TRAINED = "again-trained"
    """A call in evaluation mode after one in training mode. Made in `original/scenarios/menu.py`; read by `second_call`."""
    DROPPED = "dropped"
    """Masks of dropout that are zero: all, one, or a part of one. Made in `original/scenarios/random.py`; read by `dropped_fp64`."""
    CONFIGURATION = "configuration"
    """The unit with other plain arguments. Made in `original/scenarios/configurations.py`; read by `configurations_fp64` and `dropout`. A
    refusal on purpose is a note."""
    CONFIGURATION_DROPPED = "configuration-dropped"
    """Masks of dropout that are zero in such a configuration. Made in `original/scenarios/configurations.py`; read by `dropped_fp64`."""
    NARROW = "narrow"
    """Inputs, parameters or both in bfloat16 or float16, which the example has in float32. Made in `original/scenarios/widths.py`; read by
    `narrow_inputs`, `compiles_once`. A candidate is asked for it where it or the original names dtypes."""
    PART_MODES = "part-modes"
    """One submodule alone in the other mode. Made in `original/scenarios/later.py`; read by `part_modes`."""
    ATTRIBUTES = "attributes"
    """Plain attributes that are set after construction. Made in `original/scenarios/later.py`; read by `attributes`."""
    SECOND = "second"
    """Gradients of the squared length of gradients. Made in `original/scenarios/menu.py`; read by `second_derivatives`. A candidate is asked
    for it only where it defines or stops gradients of its own: all others have those of their formulas."""
    WORST = "worst"
    """An input that the search found. Made in `evidence/search.py`, after the candidate ran; read by `worst_input`."""


CONFIGURATIONS = (Role.CONFIGURATION, Role.CONFIGURATION_DROPPED)
REFUSABLE = (*CONFIGURATIONS, Role.ATTRIBUTES, Role.RANK, Role.LONG)
"""Roles in which a rewrite may say by an error that it does not take what the original takes; a note tells of it."""


SURPLUS = re.compile(r"^ValueError: Incompatible shapes for broadcasting: .*\btake_along_axis\(", re.S)
"""What JAX says of more rows than their index has."""


def refuses_surplus(name: str, facts: Mapping[str, Any]) -> bool:
    """Whether JAX refuses more rows than their index has, in the scenario of this name, where one input alone is longer; an error of the candidate's
    own with these words is none. Torch's `gather` leaves such rows out, whatever they are: a note tells of it."""
    return ONE_INPUT in name and facts.get("kind") == "error" and SURPLUS.search(facts.get("error") or "") is not None


def redrawn(example: int) -> str:
    """Under this name stands what the calls of a method ran that draws a new state: no scenario is one of them."""
    return f"e{example}-redrawn"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the candidate is told of a scenario: how to make the call, and nothing of what the original gave.

    `state` names a file of `given/states`, `name` one of `given/inputs`. `native`: the call is made in the user's dtypes as well. `before`: another
    call comes first; then that of the example `prior`, unless it is -1. `empty`: there is no row, which a rewrite may refuse.
    """

    name: str
    example: int = 0
    role: Role = Role.SEED
    mode: Mode = "eval"
    gradient: bool = False
    state: str = ""
    drawing: Drawing = USUAL
    conditions: Conditions = AS_MADE
    leaf_dtypes: Sequence[str] = ()
    native: bool = False
    draws: bool = False
    before: bool = False
    prior: int = -1
    empty: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {entry.name: getattr(self, entry.name) for entry in fields(Request)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """From what `to_json` gave. Raises `KeyError`, `ValueError`."""
        kinds = {
            "role": Role(row["role"]),
            "drawing": Drawing.of(row["drawing"]),
            "conditions": Conditions.of(row.get("conditions", AS_MADE)),
        }
        return cls(**{**row, **kinds})


@dataclass(frozen=True)
class NoiseOfScenario:
    """RMS and largest change by rounding noise of each array, absolute (`changes` is None where the original does not run with noise), and
    the keys of arrays that are not to be compared."""

    changes: Mapping[str, Sequence[float]] | None
    undecided: Sequence[str] = ()

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> NoiseOfScenario:
        """From the fields `noise` and `undecided`."""
        return cls(row["noise"], tuple(row["undecided"]))


@dataclass
class Noise:
    """How far rounding noise moves the original's results, found out where a comparison needs to know: most agree far more closely.

    One job for the scenario that something first asks of and those that are `likely` to be asked of, one for all others once one of them is, one for
    each stage of native noise of a scenario, and one for each training curve. `job` says which unit; `scenarios` are the rows of those whose noise is
    not known; `curves` describes the training, where there is one.
    """

    job: Job
    sandbox: Sandbox
    scenarios: Sequence[Mapping[str, Any]]
    curves: Mapping[str, Any] | None
    likely: Callable[[], Collection[str]] = tuple
    _measured: dict[str, NoiseOfScenario] = field(default_factory=dict, repr=False)
    _native: dict[tuple[str, int], Mapping[str, Sequence[float]] | None] = field(default_factory=dict, repr=False)
    _curves: dict[tuple[str, str], list[float]] = field(default_factory=dict, repr=False)
    _buffers: Mapping[str, Array] = field(default_factory=dict, repr=False)

    def of_scenario(self, name: str) -> NoiseOfScenario:
        """Of the scenario of this name. Raises `KeyError`, `OriginalFailed`."""
        if name not in self._measured:
            # The first question brings what is likely to be asked too. A second one shows that the guess fell short, and brings all.
            names = {row["name"] for row in self.scenarios} if self._measured else {name, *self.likely()}
            rows = [{key: row[key] for key in CALLED} for row in self.scenarios if row["name"] in names - {*self._measured}]
            results = self._run({"scenarios": rows})
            self._measured |= {row["name"]: NoiseOfScenario.from_json(results[row["name"]]) for row in rows}
        return self._measured[name]

    def native(self, name: str) -> Iterator[Mapping[str, Sequence[float]] | None]:
        """RMS and largest change of each array of the scenario of this name by rounding of the size of a user's dtypes, in stages: each adds runs of
        its own. None where the original does not run with it. Raises `OriginalFailed`."""
        row = next(row for row in self.scenarios if row["name"] == name)
        for stage in range(len(NATIVE_STAGES)):
            if (name, stage) not in self._native:
                results = self._run({"scenarios": [{key: row[key] for key in CALLED}], "stage": stage})
                self._native[name, stage] = results[name]
            yield self._native[name, stage]

    def of_curve(self, optimiser: str, kind: str) -> list[float]:
        """Losses with noise of one kind. Raises `OriginalFailed`."""
        if (optimiser, kind) not in self._curves:
            results = self._run({"scenarios": [], "curves": self.curves, "curve": [optimiser, kind]})
            self._curves[optimiser, kind] = results["losses"]
            if (optimiser, kind) == ("sgd", "noisy"):
                self._buffers = results["buffers"]
        return self._curves[optimiser, kind]

    @property
    def of_buffers(self) -> Mapping[str, Array]:
        """The buffers after the steps of SGD with noise. Raises `OriginalFailed`."""
        self.of_curve("sgd", "noisy")
        return self._buffers

    def _run(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = {"curves": None, "curve": None, "stage": None, **question}
        run = self.sandbox.run(replace(self.job, arguments={**self.job.arguments, **asked}))
        # Without the noise a difference cannot be judged: a failure here leaves the unit unverified, and never lets it pass.
        try:
            if run.status != "ok":
                raise OriginalFailed(f"the original ended with {run.status} where rounding noise was added: {run.error}")
            buffers = run.output / "trained.safetensors"
            return {**run.result, "buffers": tensor_files.load(buffers) if buffers.exists() else {}}
        finally:
            discard(self.sandbox, run)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What the original did in one call.

    `extreme`: what is special about the inputs. `seed` is the number of the state, -1 for one with other counters. `sampled`: the seed
    alone chose state and inputs. `runs`: so often the call is made with noise. `before`: another call comes first. `undefined`: NaN came of
    infinities on the way. `native` has the dtypes of torch's own outputs, None where there was no native call; `narrow` the narrowest of 16
    bits among the dtypes in which it computed, or "". `wide` has the kinds of operators that it computed in float32 alone there. `draws` are
    rows of kind, shape and rate. `rearranged`: it changed containers that it was given. `noise` is None where `noise_source` has to be asked.
    """

    name: str
    role: Role
    example: int = 0
    extreme: Extreme = Extreme.NONE
    mode: Mode = "eval"
    seed: int = 0
    sampled: bool = False
    gradient: bool = False
    state: str = ""
    runs: int = 0
    drawing: Drawing = USUAL
    conditions: Conditions = AS_MADE
    before: bool = False
    prior: int = -1
    """The number of the example whose call comes first too; -1 for none."""
    input_elements: int = 0
    """Elements of all inputs."""
    undefined: bool = False
    native: Sequence[str] | None = None
    narrow: str = ""
    wide: Sequence[str] = ()
    leaf_dtypes: Sequence[str] = ()
    tree: Any = None
    dtypes: Sequence[str] = ()
    draws: Sequence[Sequence[Any]] = ()
    rearranged: bool = False
    noise: NoiseOfScenario | None = None
    arrays: Mapping[str, Array] = field(default_factory=dict, repr=False)
    noise_source: Noise | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """As plain data, without the arrays."""
        row = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in ("arrays", "noise_source", "noise")}
        return row | ({"noise": self.noise.changes, "undecided": list(self.noise.undecided)} if self.noise is not None else {})

    @classmethod
    def from_json(cls, row: Mapping[str, Any], arrays: Mapping[str, Array] | None = None, noise_source: Noise | None = None) -> Scenario:
        """From what `to_json` gave, with its arrays. Raises `KeyError`, `ValueError`."""
        names = {entry.name for entry in fields(cls)} - {"role", "extreme", "drawing", "conditions", "noise", "arrays", "noise_source"}
        values = {name: row[name] for name in names if name in row}
        noise = NoiseOfScenario.from_json(row) if "noise" in row else None
        kinds: dict[str, Any] = {"role": Role(row["role"]), "extreme": Extreme(row["extreme"])}
        kinds |= {"drawing": Drawing.of(row["drawing"]), "conditions": Conditions.of(row.get("conditions", AS_MADE))}
        return cls(**kinds, noise=noise, arrays=arrays or {}, noise_source=noise_source, **values)

    def request(self) -> Request:
        """What the candidate is told."""
        # The dtypes and draws of torch's own run are part of its answer, so only whether there are any is told.
        return Request(
            name=self.name,
            example=self.example,
            role=self.role,
            mode=self.mode,
            gradient=self.gradient,
            state=self.state,
            drawing=self.drawing,
            conditions=self.conditions._replace(beside=()),
            leaf_dtypes=self.leaf_dtypes,
            native=bool(self.native),
            draws=bool(self.draws),
            before=self.before,
            prior=self.prior,
            empty=self.extreme == Extreme.EMPTY,
        )

    def changes_by_noise(self, key: str) -> tuple[float, float]:
        """RMS and largest change of an array by rounding noise, absolute. Raises `OriginalFailed`."""
        noise = self._measured_noise()
        # An array that is not listed has no floats, and rounding moves nothing there.
        low, high = UNKNOWN if noise.changes is None else noise.changes.get(key, (0.0, 0.0))
        return float(low), float(high)

    def changes_by_native_noise(self, key: str) -> Iterator[float]:
        """RMS change of an array by the rounding of native dtypes, absolute: the largest of more and more runs, so that who has seen enough asks no
        further. Infinite where the original does not run with it; nothing where it is not measured.

        Scaled up from one ulp of float64, noise misses the kinks (`relu` at zero, the largest of a window) that only rounding of this size crosses.
        Raises `OriginalFailed`.
        """
        if self.noise is not None or self.noise_source is None or self.native is None or not (self.gradient or self.role == Role.EDGE):
            return
        largest = 0.0
        for changes in self.noise_source.native(self.name):
            largest = max(largest, UNKNOWN[0] if changes is None else float((changes.get(key) or (0.0,))[0]))
            yield largest
            if not self.gradient or changes is None:  # the other stages are for gradients
                return

    def undecided(self, key: str) -> bool:
        """Whether an array is not to be compared: it drowns in noise, is a gradient at a jump, a place among equals, or what
        noise makes infinite. Raises `OriginalFailed`."""
        # Only in these scenarios can an array be undecided; elsewhere, asking would cost a job for nothing.
        if self.role not in (Role.GRADIENT_EDGE, Role.WORST, Role.NONFINITE) and self.extreme != Extreme.VANISHING:
            return False
        return key in self._measured_noise().undecided

    def _measured_noise(self) -> NoiseOfScenario:
        if self.noise is None and self.noise_source is not None:
            return self.noise_source.of_scenario(self.name)
        return self.noise or NoiseOfScenario({})


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
    exact_initial: Mapping[int, Mapping[str, Array]] = field(default_factory=dict, repr=False)
    """The same elements of one construction in float64, [elements]."""
    trained: Mapping[str, Array] = field(default_factory=dict)
    """The buffers after the steps of a training curve."""
    noise: Noise | None = None
    reached: Mapping[str, Reached] = field(default_factory=dict, repr=False)
    """Name of a scenario → places of the original that it ran."""
    large: bool = False
    """Whether it has a schedule (`contract.schedule`)."""
    refusals: Sequence[Mapping[str, Any]] = ()
    """What the original refuses on purpose (`original/scenarios/refusals.py`)."""
    unrun: str = ""
    """What of the class no example runs, in words."""

    @cached_property
    def search_start(self) -> Scenario | None:
        """The scenario whose inputs the search for the worst starts from: that of the smallest example with gradients; None where no input
        is a float, and for what runs in Python, which cannot be exported."""
        moving = [
            scenario
            for scenario in self.scenarios
            if scenario.role == Role.GRADIENT
            and scenario.sampled
            and scenario.seed == 0
            and any("float" in dtype for dtype in scenario.leaf_dtypes)
            and not self.examples[scenario.example].get("on_host")
        ]
        # Each step of the search runs both programs; the smallest example costs the least and shows the same formulas.
        return min(moving, key=self._bytes_given, default=None)

    def _bytes_given(self, scenario: Scenario) -> int:
        files = (f"states/{scenario.state}.safetensors", f"inputs/{scenario.name}.safetensors")
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
    except MALFORMED:  # safe: the error's sentence still refuses the candidate; only the place of the exception is lost
        return None


@dataclass(frozen=True)
class Answer:
    """What the candidate did in a scenario, or the `error` that it raised."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]
    given: Mapping[str, Array] = field(default_factory=dict, repr=False)
    """Key → the array as it was given, of state that the call changed and the original's did not."""

    @property
    def error(self) -> str:
        """One line, or nothing."""
        return str(self.facts.get("error", ""))

    @property
    def raised(self) -> Raised | None:
        """The exception behind `error`."""
        return raised_in(self.facts)


Call = TypeVar("Call", Request, Scenario)


def first_drawing(calls: Iterable[Call]) -> Call | None:
    """The first call in training mode, of the example or else of another configuration, in which torch draws; None where it never does."""
    roles = (Role.GRADIENT, Role.CONFIGURATION)
    drawing = [call for call in calls if call.role in roles and call.mode == "train" and call.draws]
    return min(drawing, key=lambda call: roles.index(call.role), default=None)
