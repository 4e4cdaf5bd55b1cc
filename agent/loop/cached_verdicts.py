"""Verification through a cache of verdicts (`[cache]` in migrate.toml): what another machine verified is not verified again."""

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
from migrate_agent.tools.verify.evidence.parsed_source import closure

ADDRESS, SECRET = "MIGRATE_AGENT_CACHE", "MIGRATE_AGENT_CACHE_KEY"
"""Environment variables: the address in place of the configuration's, and the secret that entries are signed with."""
NUMERIC = ("jaxlib", "numpy", "optax")
TAKEN = "the verdicts were taken from the cache: the same verifier gave them for the same original, port and examples"


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
    original, candidate = roots
    own = [file for file in inventory.files if not file.adopted]
    before = Closures(own, Sources(original, tuple(file.path for file in own)))
    read = [name for example in examples for name in before.read(unit.source, example_script(example))]
    # A file counts with what it does when imported, whether or not the unit takes something from it.
    effects = [Name(path, "") for path in _imported(own, unit.source)]
    theirs = before.of([Name(unit.source, unit.name.partition(".")[0]), *read, *effects])
    texts = {path.relative_to(candidate).as_posix(): path.read_text(encoding="utf-8") for path in sorted(candidate.rglob("*.py"))}
    mirror = mirror_layout(sorted(texts), texts, inventory.files)
    # Static checks read whole files, so a port counts with all of them.
    files = [source.path for source in closure(candidate, unit.target, list(dict.fromkeys(file.import_root for file in mirror)))]
    ours = Closures(mirror, texts).of([Name(unit.target, unit.name.partition(".")[0])])
    described = {
        "unit": [unit.source, unit.name, unit.target],
        "original": theirs.digests,
        "port": {path: _digest(texts.get(path, "")) for path in sorted(files)},
        "data": digest_of(original, [original / path for path in data_files(original)]),
        "examples": [_described(example) for example in (*examples, *translated)],
        "settings": settings,
        "python": [*sys.version_info[:3], platform.machine(), platform.system()],
        "versions": package_versions({*FRAMEWORKS, *NUMERIC, *theirs.packages, *ours.packages}),
    }
    return hashlib.sha256(json.dumps(plain(described), sort_keys=True, default=str).encode()).hexdigest()


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
