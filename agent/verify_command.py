"""`migrate-agent verify`: the verifier alone, on a rewrite that lies in the working tree."""

from __future__ import annotations

import ast
import posixpath
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rich.markup import escape

from migrate_agent.agent.config import load_config
from migrate_agent.agent.errors import UsageError
from migrate_agent.agent.exercise import Exercise, reached
from migrate_agent.agent.folder import home_of
from migrate_agent.agent.git import open_repository
from migrate_agent.agent.judge import lay_out
from migrate_agent.agent.nodes.plan import find
from migrate_agent.agent.progress import Progress, coloured, stdout
from migrate_agent.agent.recordings import examples_of, kept
from migrate_agent.agent.services import Services
from migrate_agent.agent.snippet import class_node, example_table
from migrate_agent.agent.tables import verdict_table
from migrate_agent.tools.rewrite import Untranslatable
from migrate_agent.tools.types import Evidence, Inventory, Recording, SourceFile, Unit


def verify(root: Path, module: str, against: str, kind: str, services: Services, progress: Progress) -> int:
    """Print the verdicts; gives 0 where the rewrite is verified, else 1. Raises `UserError` where there is nothing to judge."""
    repository = open_repository(root)
    config = load_config(repository.root)
    original = services.scan(repository.root)
    inventory, unit, files = candidate_of(original, find(original, module), against)
    stored, _ = kept(home_of(repository.common), repository.root)
    with (
        tempfile.TemporaryDirectory(prefix="migrate-agent-") as scratch,
        closing(services.open_sandbox(kind or config.run.sandbox, config.run.device)) as sandbox,
        progress.live(),
    ):
        progress.stage(unit.id, "running the original on its examples")
        exercise = Exercise(services, config, inventory, sandbox, Path(scratch))
        recording = exercise.known(stored)
        if not reached(recording, unit.id):
            recording = exercise.guessed(unit, recording)
        if not examples_of(recording, unit.id):
            raise UsageError(_unexercised(recording, repository.root, unit))
        evidence = judge(exercise, unit, recording, files, progress)
    stdout().print(verdict_table(evidence.verdicts))
    stdout().print(f"{escape(unit.id)} against {escape(unit.target)}: {coloured(evidence.status)}")
    return 0 if evidence.status == "verified" else 1


def judge(exercise: Exercise, unit: Unit, recording: Recording, files: Mapping[str, str], progress: Progress) -> Evidence:
    """Run the verifier on these files as a tree of their own. Raises `UsageError` on an example that has no translation."""
    services, inventory = exercise.services, exercise.inventory
    candidate = lay_out(exercise.folder / "candidate", files)
    examples = examples_of(recording, unit.id)
    try:
        translated = [services.translate(inventory, recording.observations, example) for example in examples]
    except Untranslatable as error:
        raise UsageError(f"the example of {unit.id} has no equivalent in the mirror's names: {error}") from error
    (exercise.folder / "verify").mkdir()

    def tell(text: str) -> None:
        progress.stage(unit.id, f"verifying: {text}")

    sides = (inventory.root, candidate, inventory, exercise.sandbox, exercise.folder / "verify", exercise.config)
    return services.verify(unit, examples, translated, *sides, tell)


def candidate_of(inventory: Inventory, unit: Unit, against: str) -> tuple[Inventory, Unit, dict[str, str]]:
    """The unit with the rewrite as its target (in the inventory, too), and the candidate tree: the rewrite and every torch-free file.

    `against` is `PATH[:NAME]`, "" for the mirror's own place. Raises `UsageError` where the file or the class is not there.
    """
    path, _, name = against.partition(":")
    target = posixpath.normpath(path) if path else unit.target
    text = _read(inventory.root, target, unit)
    if not _may_define(text, name or unit.name):
        raise UsageError(f"{target} defines no class {name or unit.name}")
    files = {file.path: _read(inventory.root, file.path, unit) for file in inventory.files if not file.uses_torch and not file.error}
    files[target] = f"{text}\n{unit.name} = {name}\n" if name and name != unit.name else text
    moved = replace(unit, target=target)
    units = tuple(moved if each.id == unit.id else each for each in inventory.units)
    sources = tuple(_mirrored(file, target) if file.path == unit.source else file for file in inventory.files)
    return replace(inventory, units=units, files=sources), moved, files


def _may_define(text: str, name: str) -> bool:
    """Whether the class is there; what does not parse is the verifier's to refuse."""
    try:
        return class_node(ast.parse(text), name) is not None
    except (SyntaxError, ValueError):
        return True


def _mirrored(file: SourceFile, target: str) -> SourceFile:
    """The file with its mirror at another place, imported from the same folder."""
    if target == file.target:
        return file
    inside = posixpath.relpath(target, file.import_root or ".")
    return replace(file, target=target, target_module=inside.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))


def _read(root: Path, path: str, unit: Unit) -> str:
    try:
        return (root / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path} is not there: write the rewrite of {unit.id}, or say with --against where it is") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason}") from None


def _unexercised(recording: Recording, root: Path, unit: Unit) -> str:
    error = recording.errors.get(unit.id)
    if error:
        return f"no example of {unit.id} ran: {error}"
    snippet = " ; ".join(example_table(root / unit.source, unit).splitlines())
    return f"no example reaches {unit.id}: add one to migrate.toml ({snippet})"
