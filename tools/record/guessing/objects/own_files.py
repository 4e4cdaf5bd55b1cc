"""Files of the repository for a parameter that takes a path: `Net("config/net.cfg")`."""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

MOST = 6
LARGEST = 1 << 20
"""Bytes of a file that is tried."""
FORMS: Mapping[str, tuple[str, ...]] = {
    r"cfg|conf|param|opt|setting|arch|model|yaml|json": (".cfg", ".yaml", ".yml", ".json", ".toml", ".ini", ".conf", ".prototxt"),
    r"name|class|label|vocab|dict|token|word|list|txt": (".names", ".txt", ".json", ".csv", ".tsv", ".vocab", ".data"),
    r"npy|npz|embed|anchor|mean|adj|matrix|stat|mask": (".npy", ".npz", ".txt", ".csv", ".json"),
}
"""What names of parameters hold → suffixes of files that they name, likeliest first."""
SUFFIXES = frozenset(suffix for suffixes in FORMS.values() for suffix in suffixes)
NO_PATH = re.compile(
    r"FileNotFoundError|IsADirectoryError|NotADirectoryError|os\.PathLike|[Nn]o such file|not a (valid )?(file|path)|Bad file descriptor"
    r"|(not found|does ?n[o']t exist)\W*$"
)
"""What an error says where something that is opened is the path of no file."""


def file_texts(root: Path, name: str, settings: Collection[Mapping[str, Any]]) -> Iterator[str]:
    """Paths of files below `root` for a parameter, as texts: those that an option of its name has by default, then by suffix those that its name
    suggests, or that options have by default; small ones first."""
    paths = {path.as_posix(): path.suffix for path in _files(root)}
    defaults = [(option, os.path.normpath(word)) for table in settings for option, word in table.items() if isinstance(word, str)]
    usual = {word for option, word in defaults if option.lower() in (name.lower(), re.sub(r"_(path|file|name)$", "", name.lower()))}
    known = {paths[word] for _, word in defaults if word in paths}
    suffixes = next((suffixes for words, suffixes in FORMS.items() if re.search(words, name.lower())), ())

    def key(path: str) -> tuple[bool, int, bool, int]:
        suffix = paths[path]
        return path not in usual, suffixes.index(suffix) if suffix in suffixes else len(suffixes), suffix not in known, _size(root / path)

    yield from (repr(path) for path in sorted(paths, key=key)[:MOST])


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [one for one in folders if not one.startswith(".") and one != "node_modules"]
        for one in names:
            file = Path(folder, one)
            if file.suffix in SUFFIXES and not one.startswith(".") and 0 < _size(file) <= LARGEST:
                yield file.relative_to(root)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def refuse_descriptors() -> None:
    """From now on have `open` refuse numbers: those that are guessed for a path are descriptors of this process, and it would close its own."""
    opened = builtins.open

    def checked(file: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, int):
            raise TypeError(f"expected str, bytes or os.PathLike object, not {type(file).__name__}")
        return opened(file, *args, **kwargs)

    builtins.open = checked


__all__ = ["NO_PATH", "file_texts", "refuse_descriptors"]
