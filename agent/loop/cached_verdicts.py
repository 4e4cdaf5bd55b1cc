"""Verification through a cache of verdicts (`[cache]` in migrate.toml): what another machine verified is not verified again.

Nor is what a run verified already in another file: projects of one repository often hold copies of one model.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import ValidationError

from migrate_agent.agent.config.config import Config
from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import as_kind, plain
from migrate_agent.agent.loop.verified_units import FRAMEWORKS, example_script, package_versions
from migrate_agent.tools.closure import Closures, Name, canonical
from migrate_agent.tools.scan.exports import parse
from migrate_agent.tools.scan.layout import mirror_layout
from migrate_agent.tools.scan.walk import Sources, data_files
from migrate_agent.tools.types import Evidence, Example, Inventory, SourceFile, Unit
from migrate_agent.tools.verdict_cache import CacheError, VerdictCache, digest_of, open_cache
from migrate_agent.tools.verify import Options
from migrate_agent.tools.verify.evidence.parsed_source import closure

ADDRESS, SECRET = "MIGRATE_AGENT_CACHE", "MIGRATE_AGENT_CACHE_KEY"
"""Environment variables: the address in place of the configuration's, and the secret that entries are signed with."""
NUMERIC = ("jaxlib", "numpy", "optax")
TAKEN = "the verdicts were taken from the cache: the same verifier gave them for the same original, port and examples"


COPIED = "this is a copy of {}: the original, the port and the examples are the same, and the verdicts are those of the other file"


def cache_of(config: Config) -> VerdictCache | None:
    """The cache that the configuration or the environment names. Raises `UsageError`."""
    address = os.environ.get(ADDRESS) or config.cache.address
    try:
        return open_cache(address, os.environ.get(SECRET, "")) if address else None
    except CacheError as error:
        raise UsageError(f"the cache of verdicts: {error}") from None


def through(cache: VerdictCache, key: str, judge: Callable[[], Evidence]) -> Evidence:
    """The evidence of this key from the cache, with a note; else that of `judge`, which is kept where it is `verified`."""
    started = time.monotonic()
    try:
        entry = cache.get(key)
        evidence = None if entry is None else as_kind(entry, Evidence)
    except (OSError, ValidationError):  # safe: the unit is verified here
        evidence = None
    if evidence is not None and evidence.status == "verified":
        return replace(evidence, seconds=time.monotonic() - started, notes=(*evidence.notes, TAKEN))
    evidence = judge()
    if evidence.status == "verified":
        try:
            cache.put(key, plain(evidence))
        except OSError as error:
            evidence = replace(evidence, notes=(*evidence.notes, f"the cache of verdicts was not written: {error}"))
    return evidence


class Place(NamedTuple):
    """Where a unit lies. A copy has the same files below another `folder`, that of its root of imports, and below another folder of the `mirror`."""

    unit: str
    source: str
    target: str
    folder: str
    mirror: str

    @classmethod
    def of(cls, unit: Unit, inventory: Inventory) -> Self:
        """That of a unit; without a root of its own, the folders of its files."""
        root = next((file.import_root for file in inventory.files if file.path == unit.source), "")
        folders = (root, root) if root else (unit.source.rpartition("/")[0], unit.target.rpartition("/")[0])
        return cls(unit.id, unit.source, unit.target, *folders)

    def without(self, text: str) -> str:
        """A text of JSON with the folders that its texts begin with left open."""
        for folder, name in ((self.folder, "<folder>"), (self.mirror, "<mirror>")):
            text = text.replace(f"{json.dumps(folder)[:-1]}/", f'"{name}/') if folder else text
        return text

    def moved(self, text: str, other: Place) -> str:
        """A text of JSON of this place as that of another one would be."""
        for name in ("unit", "source", "target"):
            text = text.replace(json.dumps(getattr(self, name))[1:-1], json.dumps(getattr(other, name))[1:-1])
        for name in ("folder", "mirror"):
            text = text.replace(f"{json.dumps(getattr(self, name))[:-1]}/", f"{json.dumps(getattr(other, name))[:-1]}/")
        return text

    def below(self, name: Name) -> str:
        """A name of the repository as files below the folder see it."""
        return (
            f"<folder>/{str(name).removeprefix(f'{self.folder}/')}"
            if self.folder and str(name).startswith(f"{self.folder}/")
            else str(name)
        )


def of_copy(folder: Path, location: Place, key: str, judge: Callable[[], Evidence]) -> Evidence:
    """The evidence of a copy of the unit at this location that was verified before in the run, with a note; else that of `judge`, which is kept in `folder`
    where it is `verified`. `key` is that of `copy_key_of`."""
    path, started = folder / f"{key}.json", time.monotonic()
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        other = Place(*entry["place"])
        evidence = as_kind(json.loads(other.moved(entry["evidence"], location)), Evidence)
    except (OSError, ValueError, KeyError, TypeError):  # safe: the unit is verified here
        evidence = judge()
        if evidence.status == "verified" and location.folder:
            folder.mkdir(parents=True, exist_ok=True)
            spare = path.with_suffix(f".{os.getpid()}")
            spare.write_text(json.dumps({"place": location, "evidence": json.dumps(plain(evidence))}), encoding="utf-8")
            spare.replace(path)
        return evidence
    return replace(evidence, seconds=time.monotonic() - started, notes=(*evidence.notes, COPIED.format(other.unit)))


def copy_key_of(
    unit: Unit,
    examples: Sequence[Example],
    translated: Sequence[Example],
    roots: tuple[Path, Path],
    inventory: Inventory,
    options: Options,
    device: str,
) -> str:
    """A digest of all that the evidence depends on but for the folder that the unit's files lie in: that of a copy is the same."""
    location = Place.of(unit, inventory)
    described = _dependencies(unit, examples, translated, roots, inventory, location.below)
    described["port"] = _without_twins(described["port"], location.mirror)
    files = tuple(f"{path}:" for path in (unit.target, *described["port"]))
    before = {name: row for name, row in options.reached_before.items() if name.startswith(files)}
    described["settings"] = {"options": replace(options, reached_before=before), "device": device}
    sources = {name.partition(":")[0] for name in described["original"]}
    if any("__file__" in (roots[0] / path).read_text(encoding="utf-8") for path in sources):
        described["own"] = f"alone: {unit.id}"  # it may read what lies beside its file
    text = json.dumps(plain(described), sort_keys=True, default=str)
    return hashlib.sha256(location.without(text).encode()).hexdigest()


def _without_twins(files: Mapping[str, str], root: str) -> dict[str, str]:
    """The files without those of other roots of imports that stand for the same names as files below `root`: what is imported lies there."""
    below = [path.removeprefix(f"{root}/") for path in files if root and path.startswith(f"{root}/")]
    twins = {path for path in files if not path.startswith(f"{root}/") for own in below if path == own or path.endswith(f"/{own}")}
    return {path: text for path, text in files.items() if path not in twins}


def key_of(
    unit: Unit,
    examples: Sequence[Example],
    translated: Sequence[Example],
    roots: tuple[Path, Path],
    inventory: Inventory,
    settings: Mapping[str, object],
) -> str:
    """A digest of all that the evidence depends on.

    These are the statements that the original is made of and the port's files (`roots` are those of both trees), what lies beside the original's
    Python files, the examples with their tensors, the settings, Python, the machine's architecture and the versions of all packages that either side names.
    """
    described = {**_dependencies(unit, examples, translated, roots, inventory), "settings": settings}
    return hashlib.sha256(json.dumps(plain(described), sort_keys=True, default=str).encode()).hexdigest()


def _dependencies(
    unit: Unit,
    examples: Sequence[Example],
    translated: Sequence[Example],
    roots: tuple[Path, Path],
    inventory: Inventory,
    name_of: Callable[[Name], str] = str,
) -> dict[str, Any]:
    """What the evidence depends on beside settings."""
    original, candidate = roots
    own = [file for file in inventory.files if not file.adopted]
    before = Closures(own, Sources(original, tuple(file.path for file in own)), name_of=name_of)
    read = [name for example in examples for name in before.read(unit.source, example_script(example))]
    # A file counts with what it does when imported, whether or not the unit takes something from it.
    effects = [Name(path, "") for path in _imported(own, unit.source)]
    theirs = before.of([Name(unit.source, unit.name.partition(".")[0]), *read, *effects])
    texts = {path.relative_to(candidate).as_posix(): path.read_text(encoding="utf-8") for path in sorted(candidate.rglob("*.py"))}
    mirror = mirror_layout(sorted(texts), texts, inventory.files)
    # Static checks read whole files, so a port counts with all of them.
    files = [source.path for source in closure(candidate, unit.target, list(dict.fromkeys(file.import_root for file in mirror)))]
    ours = Closures(mirror, texts).of([Name(unit.target, unit.name.partition(".")[0])])
    return {
        "unit": [unit.source, unit.name, unit.target],
        "original": theirs.digests,
        "port": {path: _digest(texts.get(path, "")) for path in sorted(files)},
        "data": digest_of(original, [original / path for path in data_files(original)]),
        "examples": [_described(example) for example in (*examples, *translated)],
        "python": [*sys.version_info[:3], platform.machine(), platform.system()],
        "versions": package_versions({*FRAMEWORKS, *NUMERIC, *theirs.packages, *ours.packages}),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(canonical(parse(text)).encode("utf-8", "surrogatepass")).hexdigest()


def _imported(files: Sequence[SourceFile], path: str) -> list[str]:
    """The files that importing a file runs, itself included, sorted."""
    by_path = {file.path: file for file in files}
    reached, row = set[str](), [path]
    while row:
        path = row.pop()
        if path in by_path and path not in reached:
            reached.add(path)
            row += by_path[path].imports
    return sorted(reached)


def _described(example: Example) -> dict[str, object]:
    """An example without the path of its tensors, which are counted by content."""
    tensors = hashlib.sha256(example.tensors.read_bytes()).hexdigest() if example.tensors else ""
    return {**plain(replace(example, tensors=None)), "tensors": tensors}
