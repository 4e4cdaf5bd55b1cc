"""The packages of the `zoo` suite: what to take from the package index, and how to lay it out as a repository.

One TOML file each in `evals/zoo/`:

* `family`, and `[[source]]` rows: `package`, `version`, `file`, `sha256` and `copy`, globs inside the wheel or the source archive, relative to
  `root` there (`*` stays within a folder, `**` does not), and `below`, the folder of the repository that they are put into; `write` has files of
  ours beside them, such as an `__init__.py` that imports no more than was copied;
* `[[example]]` rows as in `migrate.toml`;
* `[exclude]`, units that cannot be exercised whatever tool does it, each with the reason;
* `sample`, in draws: the units that a package of many classes is measured by; they and what they need are all that is migrated.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ZOO = Path(__file__).parents[1] / "zoo"


class PackageError(Exception):
    """A package cannot be fetched or differs from its pin; the message says which and why."""


@dataclass(frozen=True)
class Source:
    """A distribution of the package index and the files to take from it."""

    package: str
    version: str
    file: str
    sha256: str
    copy: tuple[str, ...]
    root: str = ""
    write: Mapping[str, str] = field(default_factory=dict)
    below: str = ""


@dataclass(frozen=True)
class Package:
    """A repository made of pinned files, with its examples."""

    name: str
    family: str
    sources: tuple[Source, ...]
    examples: tuple[Mapping[str, Any], ...]
    exclude: Mapping[str, str] = field(default_factory=dict)
    sample: tuple[str, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """Package → version, of all sources."""
        return {source.package: source.version for source in self.sources}


def load_packages(folder: Path = ZOO) -> tuple[Package, ...]:
    """All packages of the suite, by name. Raises `TypeError` where a row has a missing or unknown key."""
    return tuple(_package(file) for file in sorted(folder.glob("*.toml")))


def _package(file: Path) -> Package:
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    sources = tuple(Source(**{**row, "copy": tuple(row["copy"])}) for row in rows["source"])
    examples, sample = tuple(rows.get("example", ())), tuple(rows.get("sample", ()))
    return Package(file.stem, rows["family"], sources, examples, rows.get("exclude", {}), sample)


def cache_folder() -> Path:
    """The folder of downloads."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "migrate-agent" / "zoo"


def fetch(source: Source, cache: Path) -> Path:
    """The distribution's file, from the cache or else from the package index. Raises `PackageError`, also where it is not the pinned one."""
    path = download(source.package, source.version, source.file, cache)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != source.sha256:
        raise PackageError(f"{source.file} has sha256 {digest}, pinned is {source.sha256}; delete {path} if it is damaged")
    return path


def download(package: str, version: str, file: str, cache: Path) -> Path:
    """The distribution's file in the cache, fetched from the package index where it is not there. Raises `PackageError`."""
    path = cache / file
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _download(f"{package}=={version}", file, Path(scratch))
            # Two processes may download the same file at the same time; a rename is atomic.
            os.replace(Path(scratch) / file, path)
    return path


def _download(requirement: str, file: str, folder: Path) -> None:
    kind = ["--only-binary", ":all:"] if file.endswith(".whl") else ["--no-binary", ":all:", "--no-build-isolation"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", *kind]
    process = subprocess.run([*pip, "--dest", str(folder), requirement], capture_output=True, text=True, check=False)
    if process.returncode or not (folder / file).exists():
        last = process.stderr.strip().splitlines()[-1:] or [f"no {file} came"]
        raise PackageError(f"{requirement} cannot be fetched: {last[0]}")


def lay_out(package: Package, folder: Path, cache: Path) -> None:
    """Write the package's files below `folder`. Raises `PackageError`."""
    for source in package.sources:
        files = dict(_members(fetch(source, cache), source.root))
        for pattern in source.copy:
            names = [name for name in files if matches(name, pattern)]
            if not names:
                raise PackageError(f"{source.file} holds no {pattern}")
            for name in names:
                _write(folder / source.below / name, files[name])
        for name, text in source.write.items():
            _write(folder / name, text.encode())


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern of `copy` takes this name. Like a shell: `*` stays within a folder, `**` does not."""
    parts = re.split(r"(\*\*|\*)", pattern)
    return bool(re.fullmatch("".join({"*": "[^/]*", "**": ".*"}.get(part, re.escape(part)) for part in parts), name))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _members(archive: Path, root: str) -> Iterator[tuple[str, bytes]]:
    """(name below `root`, content) of the Python files of a wheel or a source archive."""
    prefix = f"{root}/" if root else ""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py") and name.startswith(prefix):
                    yield name.removeprefix(prefix), wheel.read(name)
        return
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.name.endswith(".py") and member.name.startswith(prefix) and (content := tar.extractfile(member)):
                yield member.name.removeprefix(prefix), content.read()
