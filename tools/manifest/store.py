"""Files below one address: a local path, or whatever fsspec can open (`gs://bucket/data`, `s3://…`, `memory://…`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, Protocol, cast


class ManifestError(Exception):
    """What cannot be read, and why, in one line."""


class File(NamedTuple):
    """`path` is relative to the address, POSIX. `stamp` changes when the content does, as far as the store tells."""

    path: str
    size: int
    stamp: str


class Store(Protocol):
    """Where files are."""

    def files(self) -> Iterator[File]:
        """All files, in the order of their paths. Raises `ManifestError`."""

    def open(self, path: str) -> IO[bytes]:
        """One of them, to read from its beginning."""


def open_store(address: str) -> Store:
    """The store at a path or address. Raises `ManifestError` where it does not exist or needs a package that is not installed."""
    return RemoteStore(address) if "://" in address else LocalStore(Path(address))


class LocalStore:
    """A file, or all files below a folder; links to files are followed."""

    def __init__(self, root: Path) -> None:
        if not root.exists():
            raise ManifestError(f"{root}: there is no such file or folder")
        self.root = root

    def files(self) -> Iterator[File]:
        names = (
            [self.root] if self.root.is_file() else sorted(path for path in self.root.rglob("*") if path.is_symlink() or not path.is_dir())
        )
        for path in names:
            if path.is_symlink() and path.is_dir():
                raise ManifestError(f"{path}: is a link to a folder: name that folder itself, or remove the link")
            try:
                status = path.stat()
            except OSError as error:
                raise ManifestError(f"{path}: {error.strerror}") from None
            yield File(self._relative(path), status.st_size, str(status.st_mtime_ns))

    def open(self, path: str) -> IO[bytes]:
        return (self.root if self.root.is_file() else self.root / path).open("rb")

    def _relative(self, path: Path) -> str:
        return path.name if path == self.root else path.relative_to(self.root).as_posix()


class RemoteStore:
    """What fsspec's file system of the address's protocol finds (https://filesystem-spec.readthedocs.io)."""

    def __init__(self, address: str) -> None:
        import fsspec

        try:
            self.system, root = cast(Any, fsspec).core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise ManifestError(f"{address}: {error}") from None
        self.address, self.root = address, str(root).rstrip("/")

    def files(self) -> Iterator[File]:
        listing: dict[str, Any] = self.system.find(self.root, detail=True)
        if not listing:
            raise ManifestError(f"{self.address}: holds no file")
        for path, details in sorted(listing.items()):
            marks = (details.get(key) for key in ("etag", "ETag", "md5Hash", "mtime", "updated", "LastModified", "created"))
            stamp = next((str(mark) for mark in marks if mark), "")
            yield File(self._relative(path), int(details["size"]), stamp)

    def open(self, path: str) -> IO[bytes]:
        whole = self.root if self._relative(self.root) == path and self.system.isfile(self.root) else f"{self.root}/{path}"
        return cast(IO[bytes], self.system.open(whole, "rb"))

    def _relative(self, path: str) -> str:
        return PurePosixPath(path).name if path == self.root else path.removeprefix(f"{self.root}/")
