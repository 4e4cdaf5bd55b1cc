"""`migrate-agent verify`: the verifier alone, on a rewrite that lies in the working tree."""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.markup import escape

from migrate_agent.agent.config.config import load_config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import plain, write, write_text
from migrate_agent.agent.loop.candidate_tree import candidate_of
from migrate_agent.agent.loop.exercising.exercise import Exercise, is_reached
from migrate_agent.agent.loop.judging import lay_out, with_recorded
from migrate_agent.agent.loop.report import VERSION, totals, verdict_row
from migrate_agent.agent.loop.rerun import candidate_beside, replay_command
from migrate_agent.agent.loop.scope import find_unit
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.torchax import side_of
from migrate_agent.agent.repository.git import Repository, open_repository
from migrate_agent.agent.repository.lifted_view import lifted_view
from migrate_agent.agent.runs.class_text import example_table
from migrate_agent.agent.runs.folder import home_of
from migrate_agent.agent.runs.progress import Progress, coloured, stdout
from migrate_agent.agent.runs.recordings import examples_of, stored_recording
from migrate_agent.agent.runs.tables import call_table, verdict_table
from migrate_agent.agent.runs.verify_page import page
from migrate_agent.tools.harness.jax_side.port_file import PortFileError, load
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.types import Evidence, Recording, Unit, UnitReport
from migrate_agent.tools.verify import Options, Performance, Portable
from migrate_agent.tools.verify import verify as run_verifier
from migrate_agent.tools.verify.contract.scenario import OriginalFailed
from migrate_agent.tools.verify.evidence import recorded_kernels
from migrate_agent.tools.verify.report.replay import NAME, NoReplay, replay
from migrate_agent.tools.verify.verifier import DETAILS


@dataclass(frozen=True)
class VerifyOptions:
    """The command's options. `seed` below 0 is the configuration's."""

    against: str = ""
    weights: Path | None = None
    replay: Path | None = None
    report: Path | None = None
    page: Path | None = None
    sandbox: str = ""
    seed: int = -1

    def target(self, unit: Unit) -> str:
        """The path of the rewrite, as it was asked for."""
        path = self.against.partition(":")[0]
        return posixpath.normpath(path) if path else unit.target


def verify(root: Path, module: str, options: VerifyOptions, services: Services, progress: Progress) -> int:
    """Print the verdicts; gives 0 where the rewrite is verified, else 1. Raises `UserError` where there is nothing to judge."""
    repository = open_repository(root)
    with lifted_view(repository) as view:
        return _verify(root, repository, view, module, options, services, progress)


def _verify(
    root: Path, repository: Repository, view: Path, module: str, options: VerifyOptions, services: Services, progress: Progress
) -> int:
    config = load_config(repository.root)
    original = services.scanned(view, config)
    judged = candidate_beside(options.replay) if options.replay is not None and not options.against else {}
    target = find_unit(original, module)
    inventory, unit, files = (original, target, judged) if judged else candidate_of(original, target, options.against)
    port = _port(options.weights)
    home = home_of(repository.common)
    stored, _ = stored_recording(home, repository.root)
    with (
        tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch,
        closing(services.open_sandbox(options.sandbox or config.run.sandbox, config.run.device)) as sandbox,
        progress.live(),
    ):
        exercise = Exercise(services, config, inventory, sandbox, Path(scratch))
        if options.replay is not None:
            return _replay(exercise, unit, files, options.replay, port, progress)
        progress.stage(unit.id, "running the original on its examples")
        recording = exercise.run_given(stored)
        if not is_reached(recording, unit.id):
            recording = exercise.add_guess(unit, recording)
        recording = exercise.add_methods([unit], exercise.add_further([unit], recording))
        if not examples_of(recording, unit.id):
            raise UsageError(_unexercised(recording, repository.root, unit))
        folder = home / "verify" / re.sub(r"[^A-Za-z0-9.]+", "-", unit.id)
        shutil.rmtree(folder, ignore_errors=True)
        evidence = verify_files(exercise, unit, recording, files, folder, port, options, progress)
    _print_evidence(evidence, unit, folder, options, root)
    return 0 if evidence.status == "verified" else 1


def verify_files(
    exercise: Exercise,
    unit: Unit,
    recording: Recording,
    files: Mapping[str, str],
    folder: Path,
    port: Mapping[str, Any],
    options: VerifyOptions,
    progress: Progress,
) -> Evidence:
    """Run the verifier on these files as a tree of their own. Raises `UsageError` on an example that has no translation."""
    services, inventory, config = exercise.services, exercise.inventory, exercise.config
    candidate = lay_out(exercise.folder / "candidate", files)
    side_of(unit, inventory, candidate)  # raises where torchax is needed and does not work
    examples = examples_of(recording, unit.id)
    try:
        translated = list(examples) if port else [services.translate(inventory, recording.observations, example) for example in examples]
    except Untranslatable as error:
        raise UsageError(f"the example of {unit.id} has no equivalent in the mirror's names: {error}") from error

    def tell(text: str) -> None:
        progress.stage(unit.id, f"verifying: {text}")

    performance = Performance(config.verify.timing, config.verify.max_slowdown)
    seed = options.seed if options.seed >= 0 else config.verify.seed
    portable = Portable(config.tpu.topology, config.tpu.batch, config.tpu.dtype)
    verifier_options = Options(
        config.limits.limits(),
        seed=seed,
        seconds=config.verify.seconds,
        performance=performance,
        portable=portable,
        port=port,
        details=options.page is not None,
        unrun=True,
        unreached="keep" if config.run.keep_unreached else "",
    )
    evidence = run_verifier(
        unit, examples, translated, inventory.root, candidate, inventory, exercise.sandbox, folder, verifier_options, tell
    )
    kernels = recorded_kernels.judge(recording.kernel_calls, unit, inventory, candidate, exercise.sandbox, config.limits.limits())
    return with_recorded(evidence, kernels)


def _port(path: Path | None) -> Mapping[str, Any]:
    if path is None:
        return {}
    try:
        return load(path)
    except PortFileError as error:
        raise UsageError(str(error)) from None


def _print_evidence(evidence: Evidence, unit: Unit, folder: Path, options: VerifyOptions, root: Path) -> None:
    """Print the table, the notes and how to run a failure again; write report and page."""
    out = stdout()
    out.print(verdict_table(evidence.verdicts))
    for note in evidence.notes:
        out.print(f"note: {escape(note)}")
    saved = folder / f"{NAME}.json"
    if saved.exists():
        replay_options = (("--against", options.against), ("--weights", options.weights), ("--sandbox", options.sandbox))
        out.print(f"run the failure again: {escape(replay_command(root, unit, saved, replay_options))}", soft_wrap=True)
    out.print(f"{escape(unit.id)} against {escape(options.target(unit))}: {coloured(evidence.status)}")
    if options.report is not None:
        write(options.report, report(evidence, replace(unit, target=options.target(unit)), root))
    if options.page is not None:
        details = json.loads((folder / DETAILS).read_text(encoding="utf-8"))
        write_text(options.page, page(evidence, options.target(unit), details))


def report(evidence: Evidence, unit: Unit, root: Path) -> dict[str, Any]:
    """The report, version 1, with this one unit."""
    measured = {"seconds": evidence.seconds, "verdicts": evidence.verdicts, "notes": evidence.notes, "figures": evidence.figures}
    strategy = "torchax" if unit.id in evidence.torchax else "rewrite"
    row = UnitReport(unit.source, unit.name, unit.target, evidence.status, "human", 1, **measured, strategy=strategy)  # type: ignore[arg-type]
    unit_row = {**plain(row), "verdicts": [verdict_row(v) for v in evidence.verdicts]}
    return {"version": VERSION, "repo": str(root.resolve()), "base": "", "branch": "", "totals": totals([row]), "units": [unit_row]}


def _replay(exercise: Exercise, unit: Unit, files: Mapping[str, str], saved: Path, port: Mapping[str, Any], progress: Progress) -> int:
    """Print what a saved failure does, call by call; gives 1 where it still diverges."""
    candidate = lay_out(exercise.folder / "candidate", files)
    progress.stage(unit.id, "replaying")
    inventory, limits = exercise.inventory, exercise.config.limits.limits()
    try:
        replayed = replay(saved, unit, inventory.root, candidate, inventory, exercise.sandbox, limits, port)
    except FileNotFoundError as error:
        raise UsageError(f"{error.filename} is not there") from None
    except (NoReplay, OriginalFailed) as error:
        raise UsageError(str(error)) from None
    stdout().print(call_table(replayed.calls))
    if replayed.culprit is None:
        stdout().print(f"{escape(unit.id)}: no call diverges")
        return 0
    stdout().print(
        f"{escape(unit.id)}: first differs in {escape(replayed.culprit.path or 'the unit itself')} ({escape(replayed.culprit.kind)})"
    )
    return 1


def _unexercised(recording: Recording, root: Path, unit: Unit) -> str:
    error = recording.errors.get(unit.id)
    if error:
        return f"no example of {unit.id} ran: {error}"
    snippet = " ; ".join(example_table(root / unit.source, unit).splitlines())
    return f"no example reaches {unit.id}: add one to migrate.toml ({snippet})"
