"""What was verified, against which text: one small JSON file for each unit under `.migrate/verified/`, committed with the unit.

It is what `migrate-agent check` compares with, on any machine: digests of the statements that the original and the port are made of
(`tools.closure`), of the examples that exercise it, and the versions of what it was verified with. Nothing in it changes from run to run,
and a change in one unit does not touch the file of another that has nothing to do with it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from migrate_agent.agent.config.errors import UsageError
from migrate_agent.agent.config.json_files import plain, read
from migrate_agent.agent.loop.scope import needed_units as needed_units
from migrate_agent.agent.runs.recordings import ORIGINS
from migrate_agent.tools.closure import DIGITS, Closures, Name, canonical
from migrate_agent.tools.scan.exports import parse
from migrate_agent.tools.scan.layout import mirror_layout
from migrate_agent.tools.scan.walk import VERIFIED, SourceError, Sources, mirror_files, read_source
from migrate_agent.tools.types import Evidence, Example, Inventory, Unit
from migrate_agent.tools.verify.evidence.counted_file import counted_file

FRAMEWORKS = ("flax", "jax", "torch")


@dataclass(frozen=True)
class Verified:
    """One unit as it was verified.

    `original` and `port`: `file:name` → digest of each statement that the unit is made of. `examples` is a digest of the examples in the
    repository that exercise it ("" where there are none: it was a recording, or a guess). `adopted` are packages whose code is part of the port.
    """

    source: str
    name: str
    target: str
    original: Mapping[str, str]
    port: Mapping[str, str]
    examples: str
    origin: str
    """Where its examples came from: `config`, `convention`, `recording` (also: captured while an example of another unit ran), `inference`."""
    adopted: Mapping[str, str]
    versions: Mapping[str, str]
    checks: Mapping[str, int]
    """Stage → verdicts that passed."""
    version: Literal[1] = 1

    @property
    def id(self) -> str:
        return f"{self.source}:{self.name}"

    def text(self) -> str:
        """As it is committed."""
        return json.dumps(plain(self), indent=1, ensure_ascii=False) + "\n"


def record_path(source: str, name: str) -> str:
    """The path of a unit's file."""
    return f"{VERIFIED}/{source}/{name}.json"


def load_verified(root: Path) -> list[Verified]:
    """All units that were verified in this repository, by id. Raises `UsageError` on a file that is none of ours."""
    units = []
    for path in sorted((root / VERIFIED).rglob("*.json")):
        try:
            units.append(read(path, Verified))
        except (ValidationError, ValueError):
            relative = path.relative_to(root).as_posix()
            raise UsageError(
                f"{relative} is not what migrate-agent wrote: take it back from git, or delete it and verify the unit again"
            ) from None
    return sorted(units, key=lambda unit: unit.id)


def read_mirror(root: Path, units: Iterable[Verified] = ()) -> dict[str, str]:
    """Path → text of the Python files that ports are made of: mirrors, and what these units name. What is gone is left out."""
    named = (key.partition(":")[0] for unit in units for key in (unit.target, *unit.port))
    paths = {*mirror_files(root), *(path for path in named if path.endswith(".py") and (root / path).is_file())}
    sources = Sources(root, tuple(sorted(paths)))
    return {path: text for path in sources for text in _text(sources, path)}


def _text(sources: Sources, path: str) -> Iterator[str]:
    try:
        yield sources[path]
    except SourceError:
        return


class Present:
    """A repository and its mirror as they are: says of each unit what its file should hold. `mirror` maps paths to text."""

    def __init__(self, inventory: Inventory, examples: Sequence[Example], mirror: Mapping[str, str]) -> None:
        self.inventory, self.examples, self.mirror = inventory, examples, mirror
        own = [file for file in inventory.files if not file.adopted]
        self.original = Closures(own, Sources(inventory.root, tuple(file.path for file in own)))
        self.port = Closures(mirror_layout(sorted(path for path in mirror if path.endswith(".py")), mirror, inventory.files), mirror)

    def of(self, unit: Unit, origin: str = "", checks: Mapping[str, int] | None = None) -> Verified:
        """The unit as it is now."""
        own, used = self.exercising(unit)
        first = unit.name.partition(".")[0]
        read = [name for example in used if own for name in self.original.read(unit.source, example_script(example))]
        before = self.original.of([Name(unit.source, first), *read])
        after = self.port.of([Name(unit.target, first)])
        adopted = _adopted(self.inventory, before.packages)
        return Verified(
            source=unit.source,
            name=unit.name,
            target=unit.target,
            original=before.digests,
            port=after.digests,
            examples=_digest(used),
            origin=origin,
            adopted=adopted,
            versions=package_versions({*FRAMEWORKS, *before.packages, *after.packages} - adopted.keys()),
            checks=checks or {},
        )

    def candidate(self) -> dict[str, str]:
        """Path → text of the tree that ports run in: the mirror, and every file without torch."""
        plain = [file.path for file in self.inventory.files if not (file.uses_torch or file.error or file.adopted)]
        return {**{path: read_source(self.inventory.root / path) for path in plain}, **self.mirror}

    def exercising(self, unit: Unit) -> tuple[bool, tuple[Example, ...]]:
        """The examples of the repository that exercise a unit, and whether they are its own: else those of units that are built of it."""
        own = [example for example in self.examples if example.unit == unit.id]
        if own:
            best = min(ORIGINS.index(example.origin) for example in own)
            return True, tuple(example for example in own if ORIGINS.index(example.origin) == best)
        last = unit.name.rpartition(".")[2]
        return False, tuple(
            example
            for example in self.examples
            if unit.id in needed_units(self.inventory, example.unit) or last in re.findall(r"\w+", example_script(example))
        )


def reached_where_verified(present: Present, verified: Iterable[Verified], unit: Unit) -> dict[str, tuple[str, ...]]:
    """`file:function` of the port → digests of its statements, of all functions that are as they were verified, the unit itself aside.

    Each of their lines ran when they were verified, or is a stub, whether or not this unit's calls run it.
    """
    rows: dict[str, tuple[str, ...]] = {}
    units = {other.id: other for other in present.inventory.units if other.kind == "function" and other.id != unit.id}
    for then in verified:
        other = units.get(then.id)
        if other is None or other.target not in present.mirror or differences(then, present.of(other)):
            continue
        file = counted_file(present.mirror[other.target])
        numbers = [number for number, place in enumerate(file.places) if place.owner.partition(".")[0] == other.name]
        rows |= {f"{other.target}:{owner}": tuple(sorted(digests)) for owner, digests in file.digests_of(numbers).items()}
    return rows


def verified_record(present: Present, unit: Unit, evidence: Evidence, origin: str) -> Verified:
    """What is written of a unit that this evidence speaks for."""
    stages = Counter(verdict.stage for verdict in evidence.verdicts if verdict.status == "pass")
    return present.of(unit, origin, stages)


def differences(then: Verified, now: Verified) -> list[str]:
    """What changed since, a line each. Versions of frameworks are no change: see `version_changes`."""
    lines = [f"{name} {change}" for name, change in _compared(then.original, now.original)]
    lines += [f"port: {name} {change}" for name, change in _compared(then.port, now.port)]
    lines += ["the examples that exercise it changed"] if then.examples != now.examples else []
    return lines + [f"{package} {old or '?'} → {new or 'not installed'}" for package, old, new in _moved(then.adopted, now.adopted)]


def version_changes(then: Verified, now: Verified) -> list[str]:
    """What it was verified with and is there in another version, a line each."""
    return [f"{name} {old} → {new or 'not installed'}" for name, old, new in _moved(then.versions, now.versions) if old]


def _compared(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in sorted({*then, *now}):
        old, new = then.get(name, ""), now.get(name, "")
        if old != new:
            yield name, "changed" if old and new else "is gone" if old else "is new to it"


def _moved(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    return ((name, then.get(name, ""), now.get(name, "")) for name in sorted({*then, *now}) if then.get(name) != now.get(name))


def example_script(example: Example) -> str:
    """An example as one text, for its names."""
    return f"{example.setup}\n_(_({example.init}\n), _({example.call}\n))"


def _digest(examples: Sequence[Example]) -> str:
    rows = sorted(repr((example.unit, canonical(parse(example_script(example))), example.train, example.domain)) for example in examples)
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS] if rows else ""


def _adopted(inventory: Inventory, packages: Iterable[str]) -> dict[str, str]:
    """Package → version, of the installed packages that are rewritten along with what uses them; those that these need included."""
    files = {file.path: file for file in inventory.files if file.adopted}
    row = [path for path, file in files.items() if file.module.partition(".")[0] in packages]
    visited: set[str] = set()
    while row:
        path = row.pop()
        if path not in visited:
            visited.add(path)
            row += [other for other in files[path].imports if other in files]
    titles = {files[path].module.partition(".")[0]: files[path].adopted.split() for path in visited}
    return {package: title[1] if len(title) > 1 else "" for package, title in sorted(titles.items())}


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Package → version, of those that are installed."""
    return {package: version for package in sorted(packages) if (version := _version(package))}


@cache
def _version(package: str) -> str:
    """Of the distribution that holds a package, without what says how it was built (`+cpu`); "" where there is none."""
    for name in (package, *_distributions().get(package, ())):
        try:
            return importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


@cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()
