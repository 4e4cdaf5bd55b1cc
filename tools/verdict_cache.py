"""A cache of verdicts for many machines: in a folder, or behind an address that fsspec can open (`s3://bucket/verdicts`).

An entry is found by the content of all that the evidence depends on, and is believed only where the same verifier, to the byte of its code, wrote
it. Evidence of `verified` units alone is kept: what failed, or ended for want of time, is tried again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

PACKAGE = Path(__file__).parents[1]
JUDGES = ("tools", "sandbox")
"""Folders of this package whose code decides on verdicts."""
ENTRY = 1
"""The version of an entry's form."""


class CacheError(Exception):
    """An address that cannot be opened, and why, in one line."""


class Store(Protocol):
    """Where entries lie."""

    def read(self, name: str) -> bytes | None:
        """An entry, or None where there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Keep an entry: whole, or not at all."""


class Folder:
    """Entries in a folder, which several processes may share."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(content)
        temporary.replace(path)


class Remote:
    """Entries behind an address of fsspec (https://filesystem-spec.readthedocs.io); an object of a bucket is written whole, or not at all."""

    def __init__(self, address: str) -> None:
        import fsspec

        try:
            self.system, root = cast(Any, fsspec).core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise CacheError(f"{address}: {error}") from None
        self.root = str(root).rstrip("/")

    def read(self, name: str) -> bytes | None:
        with _as_os_errors():
            try:
                return bytes(self.system.cat_file(f"{self.root}/{name}"))
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        path = f"{self.root}/{name}"
        with _as_os_errors():
            self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.system.pipe_file(path, content)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raises `OSError` for whatever a package of a protocol raises: each has classes of its own, such as botocore's for a server that is away."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


class VerdictCache:
    """Evidence by key. With a `secret`, entries carry its signature, and others are not believed."""

    def __init__(self, store: Store, version: str, secret: bytes = b"") -> None:
        self.store, self.version, self.secret = store, version, secret

    def get(self, key: str) -> Any | None:
        """The evidence as plain data; None where there is none, or none that this verifier signed."""
        content = self.store.read(self._name(key))
        if content is None:
            return None
        try:
            entry = json.loads(content)
            told, body = entry["signature"], entry["body"]
            row = json.loads(body)
            alike = (row["entry"], row["version"], row["key"]) == (ENTRY, self.version, key)
            return row["evidence"] if alike and hmac.compare_digest(told, self._signature(body)) else None
        except (ValueError, KeyError, TypeError):  # safe: what is no entry of ours is no evidence, and the unit is verified
            return None

    def put(self, key: str, evidence: Any) -> None:
        """Keep evidence, as plain data."""
        body = json.dumps({"entry": ENTRY, "version": self.version, "key": key, "evidence": evidence}, sort_keys=True)
        entry = {"signature": self._signature(body), "body": body}
        self.store.write(self._name(key), json.dumps(entry).encode())

    def _name(self, key: str) -> str:
        return f"{self.version[:16]}/{key[:2]}/{key}.json"

    def _signature(self, body: str) -> str:
        """By the secret and the verifier's version; without a secret it tells damaged entries, and no forged ones."""
        return hmac.new(self.secret + self.version.encode(), body.encode(), hashlib.sha256).hexdigest()


def open_cache(address: str, secret: str = "") -> VerdictCache:
    """The cache at a path or address. Raises `CacheError`."""
    store: Store = Remote(address) if "://" in address else Folder(Path(address).expanduser())
    return VerdictCache(store, verifier_version(), secret.encode())


@cache
def verifier_version() -> str:
    """A digest of the code and the tables that decide on verdicts: of this installation, whatever its number says."""
    return digest_of(PACKAGE, sorted(path for room in JUDGES for path in (PACKAGE / room).rglob("*") if path.suffix in (".py", ".toml")))


def digest_of(root: Path, files: list[Path]) -> str:
    """A digest of files with their paths."""
    total = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        # The length keeps the end of one file from counting as the start of the next.
        total.update(f"{file.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return total.hexdigest()
