"""`migrate-agent check`: which ports are no longer what was verified, and whether they still match. Made for continuous integration."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from migrate_agent.agent.cluster.workers import LocalWorkers, Workers
from migrate_agent.agent.commands.check_report import document, show
from migrate_agent.agent.commands.check_result import Checked
from migrate_agent.agent.config.config import Config, ExampleTable, load_config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import write, write_text
from migrate_agent.agent.loop.dependencies import why
from migrate_agent.agent.loop.exercising.exercise import Exercise, is_reached
from migrate_agent.agent.loop.judging import Bench, Verification, cluster_of, lay_out
from migrate_agent.agent.loop.services import Services
from migrate_agent.agent.loop.torchax import side_of
from migrate_agent.agent.loop.verified_units import (
    Present,
    Verified,
    differences,
    load_verified,
    reached_where_verified,
    read_mirror,
    record_path,
    verified_record,
    version_changes,
)
from migrate_agent.agent.repository.git import Repository, open_repository
from migrate_agent.agent.repository.lifted_view import lifted_view
from migrate_agent.agent.runs.folder import home_of
from migrate_agent.agent.runs.progress import Progress
from migrate_agent.agent.runs.recordings import examples_of, stored_recording
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.scan.walk import VERIFIED
from migrate_agent.tools.types import Inventory, Recording, Unit


@dataclass(frozen=True)
class CheckOptions:
    """The command's options. `listing` runs nothing; `versions` counts another version of a framework as a change."""

    modules: tuple[str, ...] = ()
    everything: bool = False
    listing: bool = False
    versions: bool = False
    update: bool = False
    report: Path | None = None
    sandbox: str = ""
    cluster: str = ""


def check(root: Path, options: CheckOptions, services: Services, progress: Progress) -> int:
    """Verify again what changed, and print it; gives 0 where all ports match, else 1. Raises `UserError` where there is nothing to check."""
    repository = open_repository(root)
    with lifted_view(repository) as view:
        return _check(repository, view, options, services, progress)


def _check(repository: Repository, view: Path, options: CheckOptions, services: Services, progress: Progress) -> int:
    config = load_config(repository.root)
    verified = load_verified(repository.root)
    units = _select(verified, options.modules)
    inventory = services.scanned(view, config)
    present = Present(inventory, services.examples(inventory, config), read_mirror(repository.root, units))
    rows = [_compare(unit, present, options) for unit in units]
    changed = [row for row in rows if row.changes and not row.reason]
    if changed and options.listing:
        rows = [
            Checked(row.then, row.changes, reason=row.reason or "changed since it was verified") if row.changes else row for row in rows
        ]
    elif changed:
        again = _Again(services, config, present, verified, progress)
        verified_again = {row.then.id: row for row in again.verify(changed, home_of(repository.common), options)}
        rows = [verified_again.get(row.then.id, row) for row in rows]
    if options.update:
        _update(repository.root, present, rows)
    show(rows, options.update)
    if options.report is not None:
        write(options.report, document(rows, repository.root))
    return 0 if all(row.holds for row in rows) else 1


def _select(units: Sequence[Verified], patterns: Sequence[str]) -> list[Verified]:
    if not units:
        raise UsageError(
            f"nothing here was verified yet ({VERIFIED} is empty): `migrate-agent run` writes it, along with each port that it commits"
        )
    chosen = [unit for unit in units if not patterns or any(_named(unit, pattern) for pattern in patterns)]
    unknown = [pattern for pattern in patterns if not any(_named(unit, pattern) for unit in units)]
    if unknown:
        raise UsageError(f"--module {unknown[0]}: no verified unit is called that; there are {', '.join(unit.id for unit in units[:5])}")
    return chosen


def _named(unit: Verified, pattern: str) -> bool:
    return pattern in (unit.id, unit.source, unit.target) or fnmatch(unit.id, pattern)


def _compare(then: Verified, present: Present, options: CheckOptions) -> Checked:
    """What changed of a unit; with a reason where it cannot be verified again."""
    unit = _unit(present.inventory, then)
    if unit is None:
        broken = next((file.error for file in present.inventory.files if file.path == then.source and file.error), "")
        gone = (
            f"{then.source} does not parse: {broken}"
            if broken
            else f"its original is gone: delete the port and {record_path(then.source, then.name)}"
        )
        return Checked(then, (gone,), reason=gone)
    now = present.of(unit)
    changes = [
        *differences(then, now),
        *(version_changes(then, now) if options.versions else ()),
        *(("asked for",) if options.everything else ()),
    ]
    notes = () if options.versions else tuple(version_changes(then, now))
    if not now.port.get(f"{unit.target}:{unit.name.partition('.')[0]}"):
        return Checked(then, tuple(changes), reason=f"its port is gone: {unit.target} defines no {unit.name}", notes=notes)
    return Checked(then, tuple(changes), notes=notes)


def _unit(inventory: Inventory, then: Verified) -> Unit | None:
    return next((unit for unit in inventory.units if unit.id == then.id), None)


@dataclass(frozen=True)
class _Again:
    """Verifies units again as they are in the working tree."""

    services: Services
    config: Config
    present: Present
    verified: Sequence[Verified]
    progress: Progress

    def verify(self, rows: Sequence[Checked], home: Path, options: CheckOptions) -> list[Checked]:
        """The rows with evidence, or with the reason why there is none."""
        units = [self.present.inventory.unit(row.then.id) for row in rows]
        config = self.config.model_copy(update={"example": self._examples(units)})
        kind, device = options.sandbox or config.run.sandbox, config.run.device
        cluster = cluster_of(options.cluster, self.services, kind, device)
        with (
            tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch,
            closing(cluster) if cluster else nullcontext(),
            closing(self.services.open_sandbox(kind, device)) as box,
            self.progress.live(),
        ):
            exercise = Exercise(self.services, config, self.present.inventory, box, Path(scratch))
            self.progress.stage("", "running the original on its examples")
            recording = exercise.run_given(stored_recording(home, self.present.inventory.root)[0])
            files = self.present.candidate()
            tasks = [self._prepare(exercise, recording, unit, row, files) for unit, row in zip(units, rows, strict=True)]
            workers = cluster or LocalWorkers(Bench(self.services, box))
            with ThreadPoolExecutor(workers.capacity) as pool:
                return list(pool.map(lambda row, task: self._judge(workers, row, task, home), rows, tasks))

    def _examples(self, units: Sequence[Unit]) -> tuple[ExampleTable, ...]:
        """The configuration's examples that exercise these units: no other code is run."""
        exercising = {example for unit in units for example in self.present.exercising(unit)[1]}
        return tuple(table for table in self.config.example if table.example() in exercising)

    def _prepare(
        self, exercise: Exercise, recording: Recording, unit: Unit, row: Checked, files: Mapping[str, str]
    ) -> Verification | Checked:
        """The unit's verification, or its row with the reason why there is none."""
        if not is_reached(recording, unit.id):
            recording = exercise.add_guess(unit, recording)
        recording = exercise.add_further([unit], recording)
        examples = examples_of(recording, unit.id)
        if not examples:
            return Checked(row.then, row.changes, reason=_unexercised(recording, row.then), notes=row.notes)
        try:
            translated = [self.services.translate(exercise.inventory, recording.observations, example) for example in examples]
        except Untranslatable as error:
            return Checked(row.then, row.changes, reason=f"its example has no equivalent in the port's names: {error}", notes=row.notes)
        candidate = lay_out(exercise.folder / "candidate", files)
        side_of(unit, exercise.inventory, candidate)  # raises where torchax is needed and does not work
        reached = reached_where_verified(self.present, self.verified, unit)
        root, inventory = exercise.inventory.root, exercise.inventory
        return Verification(unit, files, examples, translated, root, inventory, self.config, stubs=False, reached_before=reached)

    def _judge(self, workers: Workers, row: Checked, task: Verification | Checked, home: Path) -> Checked:
        if isinstance(task, Checked):
            return task
        folder = home / "verify" / re.sub(r"[^A-Za-z0-9.]+", "-", task.name)
        shutil.rmtree(folder, ignore_errors=True)
        evidence = workers.call(task, folder, lambda text: self.progress.stage(task.name, f"verifying: {text}"))
        return Checked(row.then, row.changes, evidence, "" if evidence.status == "verified" else why(evidence), row.notes)


def _unexercised(recording: Recording, then: Verified) -> str:
    error = recording.errors.get(then.id)
    if error:
        return f"no example ran: {error}"
    if then.origin == "recording" and not then.examples:
        return "it was verified on a recording, which is not in the repository: add an [[example]] for it to migrate.toml"
    return "no example reaches it any more: add an [[example]] for it to migrate.toml"


def _update(root: Path, present: Present, rows: Sequence[Checked]) -> None:
    """Write what was verified again and matches, for the user to commit."""
    for row in rows:
        if row.evidence is not None and row.holds:
            unit = present.inventory.unit(row.then.id)
            write_text(root / record_path(unit.source, unit.name), verified_record(present, unit, row.evidence, row.then.origin).text())
