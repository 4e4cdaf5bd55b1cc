"""`migrate-agent record -- CMD`: run the user's command, watched, and keep what it showed for later runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.loop.program_tables import note_program
from migrate_agent.agent.loop.scope import require_units
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.agent.runs.folder import home_of, locked
from migrate_agent.agent.runs.progress import Progress, stdout
from migrate_agent.agent.runs.recordings import fresh_folder, store_recording
from migrate_agent.tools.record.command import record_command
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Inventory, Recording


def record(root: Path, command: Sequence[str]) -> int:
    """Run the command in the working tree and store the recording; gives the exit status: 0 where any module or function was called."""
    repository, progress = open_repository(root), Progress()
    with locked(home_of(repository.common)):
        inventory = scan(repository.root)
        require_units(inventory, str(repository.root))
        home = home_of(repository.common)
        folder = fresh_folder(home)
        try:
            recording = record_command(inventory, command, folder)
        except FileNotFoundError as error:
            raise UsageError(f"cannot run {command[0]}: {error.strerror}") from None
        if recording.examples:
            store_recording(home, repository.root, recording)
    for subject, line in recording.errors.items():
        progress.warn(f"{subject}: {line}")
    _tell(inventory, recording)
    if (line := note_program(repository.root, command)) and recording.examples:
        progress.note(line)
    return 0 if recording.examples else 1


def _tell(inventory: Inventory, recording: Recording) -> None:
    counts = Counter(example.unit for example in recording.examples)
    console = stdout()
    for unit in inventory.units:
        console.print(Text(f"{counts[unit.id]:4d} {unit.id}" if unit.id in counts else f"   – {unit.id}"))
    spans = sum(len(rows) for rows in recording.observations.values())
    for name, count in Counter(f"{call.source}:{call.name}" for call in recording.kernel_calls).items():
        console.print(Text(f"{count:4d} {name}, which launches a kernel"))
    total = f"{len(counts)} of {len(inventory.units)} classes, {len(recording.examples)} samples, {spans} expressions observed"
    use = "`migrate-agent run` uses them" if recording.examples else "what was recorded before is kept"
    console.print(Text(f"recorded {total}; {use}"))
