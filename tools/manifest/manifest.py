"""Hashes all files of a store, several at a time, and goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from migrate_agent.tools.manifest.store import File, ManifestError, Store

VERSION = 1
CHUNK = 1 << 20
"""Bytes read at a time: files larger than memory are the rule here."""
Tell = Callable[[int, int], None]
"""Called with the number of files that are hashed, and of all."""


class Entry(NamedTuple):
    """One file; `sha256` is the hexadecimal digest of its content."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """`entries` are in the order of their paths."""

    address: str
    entries: tuple[Entry, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)


def build(
    store: Store, address: str, journal: Path, jobs: int, ignore: frozenset[Path] = frozenset(), tell: Tell = lambda count, of: None
) -> Manifest:
    """The manifest of a store. What is hashed goes to `journal` at once, and what stands there unchanged is not hashed again.

    `ignore` are local files that are ours, such as the journal. Raises `ManifestError` for a file that cannot be read, or that changes meanwhile.
    """
    root = Path(address)
    files = [file for file in store.files() if not ignore & {(root / file.path).resolve(), root.resolve()}]
    if not files:
        raise ManifestError(f"{address}: holds no file")
    hashed = _read_journal(journal)
    entries = {file.path: Entry(file.path, file.size, hashed[file]) for file in files if file in hashed}
    rest = [file for file in files if file.path not in entries]
    tell(len(entries), len(files))
    journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("a", encoding="utf-8") as stream, ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_hash, store, file) for file in rest]
        try:
            for future in as_completed(futures):
                file, digest = future.result()
                stream.write(f"{json.dumps([*file, digest])}\n")
                stream.flush()
                entries[file.path] = Entry(file.path, file.size, digest)
                tell(len(entries), len(files))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return Manifest(address, tuple(entries[file.path] for file in files))


def _hash(store: Store, file: File) -> tuple[File, str]:
    digest, size = hashlib.sha256(), 0
    try:
        with store.open(file.path) as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise ManifestError(f"{file.path}: cannot be read: {error.strerror or error}") from None
    if size != file.size:
        raise ManifestError(f"{file.path}: changed while it was read: {file.size} bytes were listed and {size} read")
    return file, digest.hexdigest()


def _read_journal(journal: Path) -> Mapping[File, str]:
    return dict(_journal_lines(journal)) if journal.exists() else {}


def _journal_lines(journal: Path) -> Iterator[tuple[File, str]]:
    for line in journal.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            path, size, stamp, digest = json.loads(line)
        except (ValueError, TypeError):
            continue  # a kill left half a line
        # A store without stamps cannot say that a file of the same size is the same.
        if stamp:
            yield File(path, size, stamp), digest


def write(manifest: Manifest, file: Path) -> None:
    """Write the whole file or nothing."""
    document = {
        "version": VERSION,
        "address": manifest.address,
        "size": manifest.size,
        "files": [entry._asdict() for entry in manifest.entries],
    }
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    file.parent.mkdir(parents=True, exist_ok=True)
    with temporary.open("w", encoding="utf-8") as stream:
        json.dump(document, stream, indent=1)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(file)


def read(file: Path) -> Manifest:
    """Raises `ManifestError` for a file that is no manifest of this version."""
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
        if document["version"] != VERSION:
            raise ManifestError(f"{file}: is a manifest of version {document['version']}; this program reads version {VERSION}")
        entries = tuple(Entry(str(row["path"]), int(row["size"]), str(row["sha256"])) for row in document["files"])
        return Manifest(str(document["address"]), entries)
    except OSError as error:
        raise ManifestError(f"{file}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise ManifestError(f"{file}: is no manifest that `migrate-agent manifest` wrote") from None
