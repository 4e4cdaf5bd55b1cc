"""A unit's programs, exported on the candidate's side and compiled in another process, for any topology, batch, length and dtype."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools import extras
from migrate_agent.tools.portable import cost, shapes
from migrate_agent.tools.portable.chips import Topology
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.refusal import Refusal, classify
from migrate_agent.tools.scan.visible import visible_from
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Run, Side, Unit

PACKAGE = "migrate_agent.tools.portable"
EXTRA = "install migrate-agent[tpu]"
"""The message where the TPU compiler is missing."""
COMPILE = Limits(seconds=1200.0, memory_bytes=12 * 2**30)
"""The compiler takes 0.5 to 2 GB, and minutes for large programs. The time is for one target."""
INPUTS = "inputs0.safetensors"
PROGRAMS = ("forward", "train")


class PortableError(Exception):
    """The unit's programs cannot be exported or compiled; one line of reason."""


class ExtraMissing(PortableError):
    """The TPU compiler is not installed."""


def has_compiler() -> bool:
    """Whether the extra `tpu` is installed. Imports nothing."""
    return extras.installed("tpu")


@dataclass(frozen=True)
class Variant:
    """One form of the unit's programs. `batch` and `length` 0 are the example's; `dtype` "" is the unit's own."""

    batch: int = 0
    length: int = 0
    dtype: str = ""
    remat: bool = False

    @property
    def name(self) -> str:
        """The stem of its files."""
        return f"b{self.batch}-l{self.length}-{self.dtype or 'own'}{'-remat' if self.remat else ''}"


@dataclass(frozen=True)
class Target:
    """Where a program is to run: a topology, and the mesh of its devices by axis (empty: all of them share the batch)."""

    topology: Topology
    axes: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Ahead:
    """One unit of one rewrite, by one example. `candidate` is the root of the rewrite's tree."""

    unit: Unit
    example: Example
    translated: Example
    inventory: Inventory
    candidate: Path
    sandbox: Sandbox
    limits: Limits = Limits()
    original: Path | None = None
    side: Side = "candidate"
    _folder: Path | None = field(default=None, repr=False)
    _facts: dict[Variant, dict[str, Any]] = field(default_factory=dict, repr=False)

    def __enter__(self) -> Ahead:
        self._folder = Path(tempfile.mkdtemp(prefix="migrate-agent-tpu-"))
        (self._folder / "empty").mkdir()
        (self._folder / "exported").mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """The folder of exported programs, which ends with the context."""
        assert self._folder is not None, "use it as a context"
        return self._folder

    @cached_property
    def file(self) -> Any:
        """The unit's file."""
        return next(file for file in self.inventory.files if file.path == self.unit.source)

    @cached_property
    def called(self) -> Mapping[str, Any]:
        """The example's call: `tree` of its arguments, and `leaves` ([shape, dtype] of each array). Raises `PortableError`."""
        root = (self.original or self.inventory.root) / self.file.import_root
        job = Job(
            "original",
            f"{PACKAGE}.inputs_side:describe",
            root,
            {"module": self.file.module, "examples": [texts(self.example)]},
            {},
            self.limits,
        )
        if self.example.tensors is not None:
            job = replace(job, inputs={"tensors0": self.example.tensors})
        with JobRun(self.sandbox, job) as ran:
            row = ran.result["examples"][0]
            if (ran.output / INPUTS).exists():
                shutil.copyfile(ran.output / INPUTS, self.folder / INPUTS)
        if "error" in row:
            raise PortableError(f"the example does not run: {row['error']}")
        return dict(row)

    @cached_property
    def leaves(self) -> tuple[shapes.Leaf, ...]:
        """The arrays of the example's call."""
        return shapes.leaves_of(self.called["leaves"])

    def resized(self, variant: Variant) -> tuple[shapes.Leaf, ...]:
        """The arrays of this variant's call."""
        return shapes.resize(self.leaves, variant.batch, variant.length)

    def facts(self, variants: Sequence[Variant], programs: Sequence[str] = PROGRAMS) -> list[dict[str, Any]]:
        """The facts of each variant's programs; exports those that were not exported before. Raises `PortableError`."""
        lacking = [variant for variant in variants if not self._known(variant, programs)]
        if lacking:
            with JobRun(self.sandbox, self.export_job(lacking, programs)) as ran:
                for path in ran.output.glob("*.bin"):
                    shutil.copyfile(path, self.folder / "exported" / path.name)
                exported = ran.result["variants"]
            self._facts |= {variant: {**self._facts.get(variant, {}), **exported[variant.name]} for variant in lacking}
        return [self._facts[variant] for variant in variants]

    def _known(self, variant: Variant, programs: Sequence[str]) -> bool:
        facts = self._facts.get(variant, {})
        return "refused" in facts or all(name in facts for name in programs)

    def forget(self) -> None:
        """Drop all exported programs, because the rewrite's files changed."""
        self._facts.clear()

    def export_job(self, variants: Sequence[Variant], programs: Sequence[str], options: Mapping[str, Any] = MappingProxyType({})) -> Job:
        """The job that exports these variants' programs."""
        rows = [
            {
                "name": variant.name,
                "leaves": [[list(shape), dtype] for shape, dtype in self.resized(variant)],
                "dtype": variant.dtype,
                "remat": variant.remat,
                "programs": list(programs),
            }
            for variant in variants
        ]
        arguments = {
            "module": self.file.target_module,
            "name": self.unit.name,
            "example": texts(self.translated),
            "tree": self.called["tree"],
            "renamed": {file.module: file.target_module for file in visible_from(self.inventory, self.unit.source).files},
            "variants": rows,
            **options,
        }
        inputs = {"tensors": self.translated.tensors} if self.translated.tensors is not None else {}
        return Job(self.side, f"{PACKAGE}.export_side:run", self.candidate / self.file.import_root, arguments, inputs, self.limits)

    def costs(self, variant: Variant, targets: Sequence[Target], programs: Sequence[str] = PROGRAMS, specs: Any = None) -> list[Cost]:
        """Compile the variant's programs for the targets. `specs` gives the shardings of a program's arguments, by its rows and the target.

        Raises `ExtraMissing`, `PortableError`.
        """
        # Before the export, which takes minutes for a large model.
        if not has_compiler():
            raise ExtraMissing(EXTRA)
        (facts,) = self.facts([variant], programs)
        pairs = [self._program(variant, target, name, facts, specs or batch_over_data) for target in targets for name in programs]
        jobs = [row for _, row in pairs if row is not None]
        results: Mapping[str, Any] = {}
        text: dict[str, str] = {}
        if jobs:
            job = Job(
                "candidate",
                f"{PACKAGE}.compile_side:run",
                self.folder / "empty",
                {"programs": jobs},
                {"exported": self.folder / "exported"},
                replace(COMPILE, seconds=COMPILE.seconds * len(targets)),
            )
            with JobRun(self.sandbox, job) as ran:
                if ran.result.get("missing"):
                    raise ExtraMissing(EXTRA)
                results = ran.result["programs"]
                text = {path.stem: path.read_text(encoding="utf-8") for path in ran.output.glob("*.hlo")}
        return [self._read(first, row, facts, results, text) for first, row in pairs]

    def _program(
        self, variant: Variant, target: Target, name: str, facts: Mapping[str, Any], specs: Any
    ) -> tuple[tuple[Cost, Target], dict[str, Any] | None]:
        """The cost without figures, and the row of the compile job; `None` where the program is refused already."""
        leaves = self.resized(variant)
        batch, length = shapes.batch_of(leaves), shapes.length_of(leaves)
        topology = target.topology
        first = Cost(topology.name, name, batch, length, variant.dtype, dict(target.axes))
        whole = facts.get("refused") or facts.get(name, {}).get("refused")
        if whole:
            return (replace(first, refused=classify(whole["text"], facts.get(name, {}), whole["line"])), target), None
        rows = facts[name]["arguments"]
        argument_specs = specs(rows, batch, target)
        if isinstance(argument_specs, Refusal):
            return (replace(first, refused=argument_specs), target), None
        # A training step may write its new state over the old one; without donation the peak counts
        # both.
        donated = [index for index, row in enumerate(rows) if name == "train" and row["role"] in ("parameter", "optimiser", "state")]
        job = {
            "name": f"{topology.name.replace(':', '-')}-{name}",
            "file": f"{variant.name}-{name}.bin",
            "topology": topology.name,
            "host": topology.host,
            "axes": dict(target.axes),
            "specs": [list(spec) if spec else None for spec in argument_specs],
            "donate": donated,
        }
        return (first, target), job

    def _read(
        self,
        cost_and_target: tuple[Cost, Target],
        job: Mapping[str, Any] | None,
        facts: Mapping[str, Any],
        results: Mapping[str, Any],
        text: Mapping[str, str],
    ) -> Cost:
        first, target = cost_and_target
        if job is None:
            return first
        row, program_facts = results[job["name"]], facts[first.program]
        first = replace(first, largest=tuple(program_facts["largest"]), notes=cost.notes(program_facts))
        if "refused" in row:
            return replace(first, refused=classify(row["refused"], program_facts))
        return replace(first, **cost.read_figures(row, text.get(str(job["name"]), ""), target.topology, str(facts.get("root", ""))))


def batch_over_data(rows: Sequence[Mapping[str, Any]], batch: int, target: Target) -> list[list[Any] | None] | Refusal:
    """The default sharding: inputs are split by batch over the axis `data`, all other arguments are replicated."""
    axis = "data"
    count = target.axes.get(axis, 0) or (0 if target.axes else device_count(target.topology))
    if count > 1 and batch % count:
        return Refusal("batch", "", f"a batch of {batch} cannot be shared by {count} devices", f"give --batch with a multiple of {count}")
    return [[axis] if count > 1 and row["role"] == "input" and row["shape"] and row["shape"][0] == batch else None for row in rows]


def device_count(topology: Topology) -> int:
    """The number of devices that the compiler sees: two for each chip whose two cores it does not join (v4, TPU7x)."""
    return topology.chips * (2 if topology.chip.name in ("v4", "tpu7x") else 1)


def texts(example: Example) -> dict[str, Any]:
    """An example's texts, as JSON."""
    return {"init": example.init, "call": example.call, "setup": example.setup}


class JobRun:
    """A job's run as a context, which removes its files. Raises `PortableError` where the job gave no result."""

    def __init__(self, sandbox: Sandbox, job: Job) -> None:
        self.sandbox, self.job = sandbox, job

    def __enter__(self) -> Run:
        self.run = self.sandbox.run(self.job)
        if self.run.status != "ok" or not isinstance(self.run.result, dict):
            self.sandbox.release(self.run)
            raise PortableError(f"{self.job.entry.rpartition('.')[2]} ended with {self.run.status}: {self.run.error}")
        return self.run

    def __exit__(self, *_: object) -> None:
        self.sandbox.release(self.run)
