"""The core types that flow from stage to stage. Imports nothing of ours.

All are frozen dataclasses of plain data, so that any stage can be run, stored, replayed or tested alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

Status = Literal["verified", "failed", "unverified", "skipped"]
Outcome = Literal["pass", "fail", "unverified"]
Strategy = Literal["rewrite", "torchax", "substitute", "redesign", "keep"]
"""`torchax`: the original itself, run inside JAX; chosen by the user, and never by the scan."""
Side = Literal["original", "candidate", "torchax"]
"""`torchax`: a candidate some of whose units run the original through torchax, so that it has torch too."""
Kind = Literal["module", "function", "program"]
CALLING = frozenset({"torch.utils.checkpoint.checkpoint"})
"""Functions of torch that call their first argument with the others: a `partial` of one has the kind of that argument."""


class Span(NamedTuple):
    """A range of source text: 1-based lines, 0-based columns counted in characters (not bytes)."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Unit:
    """One `nn.Module` class, or one function of tensor maths, to migrate.

    `source` and `target` are POSIX paths relative to the repository; `name` is the qualified name (`GPT`, `Outer.Inner`, `dice_loss`).
    `needs` holds the ids of the units that this one constructs, inherits from or calls.
    """

    source: str
    name: str
    target: str
    strategy: Strategy
    reason: str = ""
    line: int = 1
    needs: tuple[str, ...] = ()
    kind: Kind = "module"

    @property
    def id(self) -> str:
        """`file:qualified name`, the spelling used on the command line and in `migrate.toml`."""
        return f"{self.source}:{self.name}"


@dataclass(frozen=True)
class Finding:
    """Something in the repository that is no model maths (a training loop, a Triton kernel, …) and what to do with it."""

    source: str
    line: int
    name: str
    kind: str
    strategy: Strategy
    detail: str


@dataclass(frozen=True)
class SourceFile:
    """One Python file: what it imports from the repository, whether it uses torch, or why it does not parse.

    `import_root` is the folder (relative to the repository, "" or `src`) from which `path` is imported as `module`;
    from the same folder the mirror at `target` is imported as `target_module`. Its imports are searched in `leading_roots`, its import
    root and `added_roots`: the folders that the programs which it is a part of add to `sys.path` themselves, its own first.
    A file of an installed package that the repository is built on has its absolute `path`, and says in `adopted` what it belongs to
    (`name version (licence)`); its `import_root` is that of the mirror.
    """

    path: str
    module: str
    target: str
    target_module: str
    uses_torch: bool
    import_root: str = ""
    imports: tuple[str, ...] = ()
    error: str = ""
    adopted: str = ""
    leading_roots: tuple[str, ...] = ()
    added_roots: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inventory:
    """What `scan` found. `units` are leaf first: a unit comes after all units that it needs.

    `bound` are installed packages (top-level names) that need torch and whose source cannot be followed: no mirror may use them.
    """

    root: Path
    files: tuple[SourceFile, ...]
    units: tuple[Unit, ...]
    findings: tuple[Finding, ...] = ()
    bound: tuple[str, ...] = ()
    style: Literal["plain", "close"] = "close"
    """How mirrors are written: with Flax's own layers where these do the same, or close to the source."""
    scan_layers: bool = False
    """Whether equal layers that are called one after the other become one scan over stacked parameters."""

    def unit(self, identifier: str) -> Unit:
        """The unit with this id. Raises `KeyError`."""
        for unit in self.units:
            if unit.id == identifier:
                return unit
        raise KeyError(identifier)


APPLIED = "apply of "
"""In front of the dotted name of a function with a gradient of its own, a class with `apply`, where an example calls that in place of a method."""


@dataclass(frozen=True)
class Example:
    """How a unit is exercised, as source text over the names of the unit's own file (plus `torch` and `setup`).

    `init` stands between the parentheses of the constructor and `call` between those of the call.
    Recorded tensors are referred to as `_tensors["name"]` and lie in the safetensors file `tensors`.
    """

    unit: str
    init: str
    call: str
    setup: str = ""
    train: bool | None = None
    domain: tuple[float, float] | None = None
    origin: Literal["config", "convention", "recording", "inference", "llm"] = "config"
    tensors: Path | None = None
    method: str = ""
    """The method, static or class method that is called, or the property that is read; "" where the module itself is called."""
    full: str = ""
    """The constructor's arguments in the real configuration, of which shapes and dtypes alone are compared; "" where there is none."""


@dataclass(frozen=True)
class KernelCall:
    """What a function that launches a kernel of the repository was given and gave, where it ran.

    `name` is qualified in `source`; of a `torch.autograd.Function` it is `Class.forward`, without its `ctx`. `arguments` (a list and a dictionary) and
    `result` are trees (`harness.common.trees`) over the arrays `in/0`, `out/0`, … of the safetensors file `tensors`. Of tensors that it changed in
    place, `changed` names the parameters, and nothing tells what they held afterwards.
    """

    source: str
    name: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    changed: tuple[str, ...] = ()
    tensors: Path | None = None


@dataclass(frozen=True)
class Observed:
    """What an expression evaluated to while the examples ran.

    `kinds` are strings: `tensor`, `parameter`, `ndarray`, `int`, `float`, `bool`, `complex`, `str`, `none`, `list`, `tuple`, `dict`, `set`,
    `size` (torch.Size), `dtype`, `device`, `generator`, `slice`, `ellipsis`, `module:<dotted class>` (an instance), `class:<dotted class>`,
    `function:<dotted name>`, `object:<dotted class>`. Classes and functions of the repository are dotted as they are imported there.
    `shapes` and `dtypes` are those of tensors, first seen first, at most four; dtypes are torch's names without prefix (`float32`).
    A lazy layer of torch has the kind of what it becomes, and as `shapes` the input sizes `(n,)` that first calls gave it.
    """

    kinds: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    whole: bool = False
    """Whether all were contiguous tensors that fill their storage, so that strides and places in memory follow from the shape."""
    changed: Literal["", "alone", "returned", "inside"] = ""
    """Of a name that is an argument: whether a call changed the tensor in place, and gave back that very tensor (`returned`; `alone` where
    nothing else in the calling function held its memory) or something else (`inside`)."""
    causal: bool | None = None
    """Of a call in a loop that appends to its argument: whether what followed in that argument changed nothing of the result before it.
    `None` where that is not known."""


Observations = Mapping[str, Mapping[Span, Observed]]
"""Source file (relative POSIX path) → expression → what it was."""


@dataclass(frozen=True)
class Recording:
    """What running the examples of the repository showed: further examples for nested classes, and expression types."""

    examples: tuple[Example, ...] = ()
    observations: Observations = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    """Unit id → one line that says why its example did not run; and `file:name` of a function that launches a kernel → why no call was kept."""
    kernel_calls: tuple[KernelCall, ...] = ()
    """Calls of functions that launch a kernel of the repository."""
    inside: Mapping[str, str] = field(default_factory=dict)
    """Unit id → one line that says why what ran of it, inside another unit, gave no example of its own."""


@dataclass(frozen=True)
class Hole:
    """A place that the rules did not dare to rewrite, with the reason. `code` is its class (`unknown-op`, `alias-write`, `dynamic-shape`, …)."""

    source: str
    span: Span
    code: str
    reason: str
    text: str
    unit: str = ""


@dataclass(frozen=True)
class Draft:
    """The target files that a set of units needs (relative path → text), with the holes and notes left in them.

    `postponed` are the ids of units that the files name, and that stand there as an error once they are constructed.
    """

    files: Mapping[str, str]
    holes: tuple[Hole, ...] = ()
    notes: tuple[str, ...] = ()
    postponed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """Files that claim to be the rewrite of a unit, ready to run."""

    unit: str
    files: Mapping[str, str]
    proposer: Literal["rules", "llm", "human"] = "rules"


@dataclass(frozen=True)
class Limits:
    """What one sandboxed job may use."""

    seconds: float = 120.0
    memory_bytes: int = 6 * 2**30
    processes: int = 256
    file_bytes: int = 2 * 2**30


@dataclass(frozen=True)
class Job:
    """One call of a function inside a sandbox.

    `entry` is `package.module:function`; it is called as `function(arguments, inputs, output)` where `inputs` maps names to read-only
    paths and `output` is the one folder it may write to. What it returns (JSON) becomes `Run.result`.
    `root` is the folder of user code that goes first on `sys.path`. Side `candidate` cannot import torch; side `torchax` is one that can.
    """

    side: Side
    entry: str
    root: Path
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    limits: Limits = Limits()


@dataclass(frozen=True)
class Run:
    """What became of a job. `output` holds the files it wrote; `error` is one line; `log` is for people and never parsed.

    `timeout`, `memory` and `disk`: the job used up what it may have, which says nothing about whether its code is right. `lost` says nothing
    about the job's code: what ran it was ended from outside, twice, or the machine's disk is full.
    """

    status: Literal["ok", "error", "timeout", "memory", "disk", "crash", "lost"]
    output: Path
    result: Any = None
    error: str = ""
    traceback: str = ""
    log: str = ""
    seconds: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True)
class Raised:
    """An exception of the candidate: its class and the first line of its message, and the deepest line of the candidate's own files."""

    type: str
    message: str
    file: str = ""
    line: int = 0
    code: str = ""


@dataclass(frozen=True)
class Verdict:
    """What one check found. `unverified` means that it could not judge, and never counts as `pass`.

    `detail` is a sentence for people. What programs need of it stands in the fields below: the scenario and its leaf (`out/0`, `grad/…`,
    `state/…`) that show the failure, the kind of `error` (`values`, `shape`, `dtype`, `nonfinite`, `missing`, `tree`, `state`, `draws`, `raised`), the
    submodule that diverges first ("" for the unit itself, None where none was located), the exception, and the arguments that were changed.
    """

    stage: str
    check: str
    status: Outcome
    measured: float | None = None
    limit: float | None = None
    detail: str = ""
    scenario: str = ""
    leaf: str = ""
    error: str = ""
    submodule: str | None = None
    raised: Raised | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Weight:
    """One row of a unit's weight map: torch's name, the path of the port's variable, the shape in torch, and the order of axes that turns
    the port's array into torch's (`None`: as it is)."""

    name: str
    path: str
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Surface:
    """Statements by function (`file:function`) and digest: those that ran in compared calls, and of the definitions `names` (`file:name`), which
    belong to the unit, those that did not."""

    ran: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    idle: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reach:
    """How much of a port ran in calls that were compared.

    `lines`: statements of its functions, without those of other units and of copied helpers, and without those that only refuse or tell; `reached`:
    those that ran; `stubs`: those that refuse what was not tried; `missed`: what neither ran nor refuses, on either side
    (`file:lines (function): text`). `ran` says of all functions of the port's files (`file:function`) which statements ran, by digest; `idle` which of
    `lines` did not; `original` says the same of the original. `names` are the definitions (`file:name`) of the
    port that were judged. `excused` are places of the original that an accelerator of torch's alone runs, and that nothing was compared with.
    """

    lines: int = 0
    reached: int = 0
    stubs: int = 0
    missed: tuple[str, ...] = ()
    ran: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    excused: tuple[str, ...] = ()
    idle: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    original: Surface = Surface()

    def __str__(self) -> str:
        stubs = f"; {self.stubs} stub{'s' if self.stubs > 1 else ''}" if self.stubs else ""
        return f"{self.reached} of {self.lines} lines{stubs}"


@dataclass(frozen=True)
class Evidence:
    """All verdicts on one candidate."""

    unit: str
    verdicts: tuple[Verdict, ...]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    """What a reader should know beside the verdicts: examples that did not run, variations that the original does not take, …"""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What was measured but is not judged: peak memory in bytes and step times in seconds, which differ from run to run; and for each TPU
    topology that is configured, `tpu/TOPOLOGY/PROGRAM/QUANTITY`."""
    weights: tuple[Weight, ...] = ()
    """The weight map, as the port tells it of its first example; empty for a port that is no module of Flax NNX."""
    reach: Reach | None = None
    """How much of the port ran; None where no call of it did."""
    torchax: tuple[str, ...] = ()
    """Ids of the units, of those that the port is made of, that are no rewrite but run their original through torchax."""
    refused: tuple[str, ...] = ()
    """Methods that only guesses call, and that the port refuses in such a call: stubs take their place."""

    @property
    def status(self) -> Status:
        """`failed` where a check failed, `unverified` where one could not judge or none ran, else `verified`."""
        outcomes = {verdict.status for verdict in self.verdicts}
        if "fail" in outcomes:
            return "failed"
        return "verified" if outcomes == {"pass"} else "unverified"


class Cause(StrEnum):
    """Why a unit is not verified. Its `reason` says the same in a sentence for people."""

    NONE = ""
    """It is verified."""
    SCOPE = "scope"
    """It is outside what was asked for, or no torch maths."""
    INTERRUPTED = "interrupted"
    """The run ended before it."""
    NO_EXAMPLE = "no_example"
    """No example reaches it."""
    EXAMPLE_FAILED = "example_failed"
    """Its example does not run on the original."""
    TRANSLATION = "translation"
    """Its example cannot be put in the mirror's names."""
    HOLE = "hole"
    """The rules left a hole, and no model filled it."""
    DEPENDENCY = "dependency"
    """A unit that it needs is not verified."""
    DIFFERS = "differs"
    """A check failed."""
    UNDECIDED = "undecided"
    """A check could not judge."""
    BUDGET = "budget"
    """Attempts, tokens, money or seconds were spent."""
    FILE_TAKEN = "file_taken"
    """Its target exists already, written by somebody else."""
    REVIEW = "review"
    """It was not accepted in the review."""
    INTERNAL = "internal"
    """An error of this program."""


@dataclass(frozen=True)
class Usage:
    """Model calls and tokens spent on a unit, US dollars by the price table, and seconds waited for answers."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class UnitReport:
    """One row of the report (contract in the design page)."""

    source: str
    name: str
    target: str
    status: Status
    proposer: Literal["rules", "llm", "human"] = "rules"
    attempts: int = 0
    commit: str = ""
    seconds: float = 0.0
    llm: Usage = Usage()
    verdicts: tuple[Verdict, ...] = ()
    reason: str = ""
    cause: Cause = Cause.NONE
    example: str = ""
    """An `[[example]]` for `migrate.toml` to be completed, where none reaches the unit."""
    holes: tuple[Hole, ...] = ()
    notes: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    """As in the evidence: measured, but not judged."""
    kind: Kind = "module"
    reach: Mapping[str, int] = field(default_factory=dict)
    """`lines` of the port's functions, those that were `reached` in compared calls, `stubs` in place of others, and those `kept` unreached."""
    strategy: Strategy = "rewrite"
    """`torchax` where the mirror holds no rewrite, but the original run through torchax."""

    @property
    def id(self) -> str:
        """`file:qualified name`; a program is called by its file alone."""
        return f"{self.source}:{self.name}" if self.name else self.source
