"""The recording that `migrate-agent record` captured last, and which of all examples exercise a unit."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from migrate_agent.agent.config.json_files import read, write
from migrate_agent.tools.record.store import load_recording
from migrate_agent.tools.scan.main_globals import lifted_bytes
from migrate_agent.tools.types import Example, Recording

ORIGINS = ("config", "convention", "recording", "inference", "llm")


def fresh_folder(home: Path) -> Path:
    """An empty folder for the next recording, beside the last one."""
    folder = home / "recording.new"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def store_recording(home: Path, root: Path, recording: Recording) -> None:
    """Put the fresh recording in the place of the last one.

    Notes the digests of the sources it was seen in, since its positions mean nothing in others.
    """
    folder, last = home / "recording.new", home / "recording"
    calls = (call.source for call in recording.kernel_calls)
    sources = {*recording.observations, *(_source(example) for example in recording.examples), *calls}
    write(folder / "sources.json", {source: _digest(root / source) for source in sorted(sources)})
    shutil.rmtree(last, ignore_errors=True)
    folder.rename(last)


def stored_recording(home: Path, root: Path) -> tuple[Recording, list[str]]:
    """The stored recording as far as it fits the sources at `root`, and the sources that have changed since."""
    folder = home / "recording"
    if not (folder / "sources.json").exists():
        return Recording(), []
    recording = load_recording(folder)
    digests: dict[str, str] = read(folder / "sources.json", dict)
    changed = [source for source, digest in digests.items() if _digest(root / source) != digest]
    examples = tuple(example for example in recording.examples if _source(example) not in changed)
    observations = {source: spans for source, spans in recording.observations.items() if source not in changed}
    calls = tuple(call for call in recording.kernel_calls if call.source not in changed)
    return Recording(examples, observations, kernel_calls=calls), changed


def examples_of(recording: Recording, unit: str) -> tuple[Example, ...]:
    """The examples that exercise a unit: those of the best origin there is, of each method too (contract: configuration, convention, recording, inference)."""
    mine = [example for example in recording.examples if example.unit == unit]
    best: dict[str, int] = {}
    for example in mine:
        best[example.method] = min(best.get(example.method, len(ORIGINS)), ORIGINS.index(example.origin))
    return tuple(example for example in mine if ORIGINS.index(example.origin) == best[example.method])


def _source(example: Example) -> str:
    return example.unit.rpartition(":")[0]


def _digest(file: Path) -> str:
    """Of what the file says, main blocks lifted: a command that is recorded runs the file itself, and units run in the lifted one."""
    return hashlib.sha256(lifted_bytes(file.read_bytes())).hexdigest() if file.is_file() else ""
