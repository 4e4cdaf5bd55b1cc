"""`migrate-agent tpu`: what a unit's rewrite is on a TPU, found by the real compiler without one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.markup import escape

from migrate_agent.agent.config.config import Config, load_config
from migrate_agent.agent.config.errors import MissingError, UsageError, require
from migrate_agent.agent.config.json_files import write, write_text
from migrate_agent.agent.loop.candidate_tree import candidate_of
from migrate_agent.agent.loop.exercising.exercise import Exercise, is_reached
from migrate_agent.agent.loop.judging import lay_out
from migrate_agent.agent.loop.scope import find_unit
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.torchax import side_of
from migrate_agent.agent.repository.git import Repository, open_repository
from migrate_agent.agent.repository.lifted_view import lifted_view
from migrate_agent.agent.runs.folder import home_of
from migrate_agent.agent.runs.progress import Progress, stdout
from migrate_agent.agent.runs.recordings import examples_of, stored_recording
from migrate_agent.agent.tpu import kernels as tpu_kernels
from migrate_agent.agent.tpu import mesh as tpu_mesh
from migrate_agent.agent.tpu import recompile as tpu_recompile
from migrate_agent.agent.tpu import tables
from migrate_agent.agent.tpu.page import page
from migrate_agent.agent.tpu.result import TpuResult, report_json, result_lines
from migrate_agent.tools import extras
from migrate_agent.tools.portable.ahead import PROGRAMS, Ahead, ExtraMissing, PortableError, Target, Variant
from migrate_agent.tools.portable.chips import Topology, TopologyError, topology
from migrate_agent.tools.portable.cost import Cost
from migrate_agent.tools.portable.fit import MEMORY, Axis, Fit, Remedy, fit, remedies
from migrate_agent.tools.portable.full import full_costs, smallest_fitting
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.types import Example, Inventory, Recording, Unit


@dataclass(frozen=True)
class TpuOptions:
    """The command's options. Texts of `init` and `call` stand in the place of the example's."""

    topologies: tuple[str, ...] = ()
    batch: int = 0
    each: bool = False
    """Whether `batch` is that of each chip."""
    full: bool = False
    """Whether the example's real configuration is asked about, split over all devices."""
    length: int = 0
    dtype: str = ""
    programs: tuple[str, ...] = PROGRAMS
    init: str = ""
    call: str = ""
    mesh: str = ""
    kernels: bool = False
    write: bool = False
    fit: bool = False
    recompile: bool = False
    report: Path | None = None
    page: Path | None = None
    sandbox: str = ""


def tpu(root: Path, module: str, options: TpuOptions, services: Services, progress: Progress) -> int:
    """Print what was found; gives 0 where all programs compiled (in the real configuration: each for one of the topologies), else 1.

    Raises `UserError`.
    """
    repository = open_repository(root)
    config = load_config(repository.root)
    # Asked before the scan and the sandbox start, so that a missing option costs no waiting.
    topologies = requested_topologies(options, config)
    if options.full and (options.init or options.mesh or options.kernels or options.write or options.fit or options.recompile):
        raise UsageError("--full splits the parameters itself: give it without --init, --mesh, --kernels, --write, --fit and --recompile")
    require("tpu", "`migrate-agent tpu`")
    with prepared(repository, config, module, options, services, progress) as (ahead, examples):
        result = compile_programs(ahead, examples, topologies, options, config, progress)
    show(result, options)
    if options.full:
        return 0 if all(smallest_fitting(result.costs).values()) else 1
    equal = result.sharded is None or result.sharded.check.equal
    return 0 if equal and all(cost.refused is None for cost in result.costs) else 1


@contextmanager
def prepared(
    repository: Repository, config: Config, module: str, options: TpuOptions, services: Services, progress: Progress
) -> Iterator[tuple[Ahead, Sequence[Example]]]:
    """A unit with its rewrite, ready to be compiled, and all its examples, while the sandbox is open. Raises `UserError`."""
    stored, _ = stored_recording(home_of(repository.common), repository.root)
    with (
        lifted_view(repository) as view,
        tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch,
        closing(services.open_sandbox(options.sandbox or config.run.sandbox, config.run.device)) as sandbox,
        progress.live(),
    ):
        inventory = services.scanned(view, config)
        unit = find_unit(inventory, module)
        exercise = Exercise(services, config, inventory, sandbox, Path(scratch))
        progress.stage(unit.id, "running the original on its examples")
        ahead, examples = prepare(exercise, unit, stored, options)
        with ahead:
            yield ahead, examples


def requested_topologies(options: TpuOptions, config: Config) -> list[Topology]:
    """The topologies asked for, else those of the configuration. Raises `UsageError`."""
    texts = options.topologies or config.tpu.topology
    if not texts:
        raise UsageError("say for what: --topology v5e:4x4, or topology = [...] under [tpu] in migrate.toml")
    try:
        return [topology(text) for text in texts]
    except TopologyError as error:
        raise UsageError(str(error)) from None


def prepare(exercise: Exercise, unit: Unit, stored: Recording, options: TpuOptions) -> tuple[Ahead, Sequence[Example]]:
    """The unit with its rewrite (the one in the working tree, else what the rules write), and all its examples. Raises `UsageError`."""
    services, inventory = exercise.services, exercise.inventory
    own = [example for example in services.examples(inventory, exercise.config) if example.unit == unit.id]
    recording = exercise.run_given(stored, () if options.recompile or options.write else own[:1])
    if not is_reached(recording, unit.id):
        recording = exercise.add_guess(unit, recording)
    example = _example(recording, unit, options)
    inventory, unit, files = rewritten_files(services, inventory, unit, recording, example)
    candidate = lay_out(exercise.folder / "candidate", files)
    try:
        translated = services.translate(inventory, recording.observations, example)
    except Untranslatable as error:
        raise UsageError(f"the example of {unit.id} has no equivalent in the mirror's names: {error}") from error
    side = side_of(unit, inventory, candidate)
    ahead = Ahead(unit, example, translated, inventory, candidate, exercise.sandbox, exercise.config.limits.limits(), side=side)
    return ahead, examples_of(recording, unit.id)


def _example(recording: Recording, unit: Unit, options: TpuOptions) -> Example:
    examples = examples_of(recording, unit.id)
    if not examples:
        reason = recording.errors.get(unit.id) or recording.inside.get(unit.id)
        raise UsageError(reason or f"no example reaches {unit.id}: add one to migrate.toml")
    first = next((example for example in examples if example.full), examples[0]) if options.full else examples[0]
    if options.full and not first.full:
        raise UsageError(
            f'--full: no example of {unit.id} names its real configuration: add `full = "…"` to its [[example]] in migrate.toml'
        )
    return replace(first, init=options.init or (first.full if options.full else first.init), call=options.call or first.call)


def rewritten_files(
    services: Services, inventory: Inventory, unit: Unit, recording: Recording, example: Example
) -> tuple[Inventory, Unit, Mapping[str, str]]:
    """The tree of the rewrite. Raises `UsageError` where there is none in the working tree and the rules leave holes."""
    # What stands in the working tree may have been edited since, and is what its owner will run.
    if (inventory.root / unit.target).is_file():
        return candidate_of(inventory, unit, "")
    draft = services.compose(inventory, recording.observations, [unit.id], {}, (example,))
    if draft.holes:
        hole = draft.holes[0]
        location = f"{hole.source}:{hole.span.line}"
        raise UsageError(f"{unit.id} is not rewritten yet, and the rules leave {len(draft.holes)} places open: {location}: {hole.reason}")
    return inventory, unit, draft.files


def compile_programs(
    ahead: Ahead, examples: Sequence[Example], topologies: Sequence[Topology], options: TpuOptions, config: Config, progress: Progress
) -> TpuResult:
    """Compile for each topology. Raises `UsageError` where the unit's programs cannot be had, `MissingError` without the compiler."""
    variant = Variant(options.batch or config.tpu.batch, options.length, options.dtype or config.tpu.dtype)
    costs: list[Cost] = []
    shards = None
    try:
        if options.mesh:
            progress.stage(ahead.unit.id, "running the sharded step on simulated devices")
            shards = tpu_mesh.shard(ahead, variant, tpu_mesh.axes_of(options.mesh))
            # After the check alone: an annotation in a file is believed from then on.
            shards = tpu_mesh.write_annotations(ahead, variant, shards, ahead.inventory.root) if options.write else shards
        kernels = None
        if options.kernels:
            progress.stage(ahead.unit.id, "trying kernels")
            kernels = tpu_kernels.try_kernels(ahead, variant, topologies, options.write)
        if options.full:
            progress.stage(ahead.unit.id, f"compiling for {', '.join(chips.name for chips in topologies)}")
            return TpuResult(ahead.unit.id, ahead.unit.target, tuple(full_costs(ahead, variant, topologies, options.programs)), full=True)
        # Topologies with the same number of chips share a size, and with it one export.
        sized = {chips: replace(variant, batch=variant.batch * (chips.chips if options.each else 1)) for chips in topologies}
        ahead.facts(list(dict.fromkeys(sized.values())), options.programs)
        for size in dict.fromkeys(sized.values()):
            alike = [chips for chips in topologies if sized[chips] == size]
            progress.stage(ahead.unit.id, f"compiling for {', '.join(chips.name for chips in alike)}")
            if shards:
                costs += tpu_mesh.costs(ahead, size, alike, shards.proposal)
            else:
                costs += ahead.costs(size, [Target(chips) for chips in alike], options.programs)
        # The compiler is asked size by size; people read in the order in which they asked.
        costs.sort(key=lambda cost: [chips.name for chips in topologies].index(cost.topology))
        fits, helped = search_sizes(ahead, topologies, variant, costs, progress) if options.fit else ((), ())
        again = tpu_recompile.count_programs(ahead, examples, costs) if options.recompile else None
    except ExtraMissing:
        raise MissingError(extras.advice("tpu", "`migrate-agent tpu`")) from None
    except PortableError as error:
        raise UsageError(f"{ahead.unit.id}: {error}") from None
    return TpuResult(ahead.unit.id, ahead.unit.target, tuple(costs), shards, fits, helped, again, kernels)


def search_sizes(
    ahead: Ahead, topologies: Sequence[Topology], variant: Variant, costs: Sequence[Cost], progress: Progress
) -> tuple[tuple[Fit, ...], tuple[tuple[str, tuple[Remedy, ...]], ...]]:
    """The largest batch and length for each topology, and what helps where the size that was asked about does not fit."""
    fits: list[Fit] = []
    helped = []
    for chips in topologies:
        target = Target(chips)
        refused = any(cost.topology == chips.name and cost.refused and cost.refused.kind in MEMORY for cost in costs)
        # Each remedy costs a compilation, and says nothing where the size fits.
        if refused:
            progress.stage(ahead.unit.id, f"trying what helps on {chips.name}")
            helped.append((chips.name, tuple(remedies(ahead, target, variant))))
        axes: tuple[Axis, ...] = ("batch", "length")
        for axis in axes:
            progress.stage(ahead.unit.id, f"looking for the largest {axis} on {chips.name}")
            fits.append(fit(ahead, target, variant, axis))
    return tuple(fits), tuple(helped)


def show(result: TpuResult, options: TpuOptions) -> None:
    """Print the tables; write report and page."""
    out = stdout()
    out.print(tables.costs(result.costs))
    for line in result_lines(result):
        out.print(escape(line), soft_wrap=True)
    if options.report is not None:
        write(options.report, report_json(result))
    if options.page is not None:
        write_text(options.page, page(result))
