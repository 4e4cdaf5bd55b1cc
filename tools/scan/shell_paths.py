"""The folders that a repository's shell scripts, make files, container files and README put on `PYTHONPATH`.

    SRC_ROOT=$PWD/../../src
    export PYTHONPATH=$SRC_ROOT/models:$SRC_ROOT/utils:$PYTHONPATH

They are read off the text: literal paths, the working folder (`$PWD`, `$(pwd)`), the place of the script (`$(cd "$(dirname "$0")" && pwd)`),
and variables that the same file sets from these. A relative path counts from the script's folder or from the repository's root: which of the two
the text does not say, so that each gives a list of its own. Paths that other variables lead through are left out.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from migrate_agent.tools.scan.walk import shell_files

_LARGEST = 1 << 18
"""Bytes of a file that is read: scripts and READMEs by hand are smaller."""
_WORKING, _OWN = "\0working", "\0own"
"""What stands for the working folder and for the script in a text whose usual ways to say them are replaced."""
_QUOTED = r"\"?([\w./$\{\}\0-]*)\"?"
_REPLACED = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\$\$", "$"),
        (r"\$\{BASH_SOURCE(?:\[0\])?:-\$0\}|\$\{?BASH_SOURCE(?:\[0\])?\}?|\$\{?0\}?(?!\w)", _OWN),
        (r"\$\((?:shell +)?pwd(?: -P)?\)|`pwd`|\$PWD\b|\$\{PWD\}|\$\(CURDIR\)|\$\{CURDIR\}|\$\(PWD\)", _WORKING),
        (rf"\$\((?:readlink -f|realpath)(?: --)? +{_QUOTED}\)|`(?:readlink -f|realpath) +{_QUOTED}`", r"\1\2"),
        (rf"\$\(dirname(?: --)? +{_QUOTED}\)|`dirname +{_QUOTED}`", r"\1\2/.."),
        (rf"\$\( *cd(?: --)? +{_QUOTED}(?: *>/dev/null)?(?: 2>&1| 2>/dev/null)? *(?:&&|;) *pwd(?: -P)? *\)", r"\1"),
    )
)
_ASSIGNED = re.compile(
    r"(?<![\w$\{%-])(?P<name>[A-Za-z_]\w*)(?: *[:?]= *| = *|=|(?<=PYTHONPATH) +(?=[.\w$\0]*[/$\0]))(?P<value>(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|`\"'()])*)"
)
"""As shells, make files and container files have it (`ENV PYTHONPATH ./src`)."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|\((\w+)\)|(\w+))")
_OPTIONAL = re.compile(r"\$\{PYTHONPATH:?[-+](?:[^{}]|\{[^{}]*\})*\}")
"""`${PYTHONPATH:+:$PYTHONPATH}` and `${PYTHONPATH:-}`: what was on the path before."""

PathLists = tuple[tuple[str, ...], ...]


def shell_paths(root: Path) -> PathLists:
    """Lists of folders of the repository, each in the order in which Python would search it."""
    lists: dict[tuple[str, ...], None] = {}
    for path in shell_files(root):
        if (text := _text(root / path)) and "PYTHONPATH" in text:
            lists |= dict.fromkeys(path_lists(path, text))
    return tuple(lists)


def path_lists(path: str, text: str) -> PathLists:
    """The lists of folders that the script at `path` sets, relative to the repository; those outside of it are left out."""
    lists: dict[tuple[str, ...], None] = {}
    for entries in _assigned(_replaced(text)):
        for working in (posixpath.dirname(path), ""):
            folders = dict.fromkeys(folder for entry in entries if (folder := _folder(entry, path, working)) is not None)
            lists |= {tuple(folders): None} if folders else {}
    return tuple(lists)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace") if os.path.getsize(file) <= _LARGEST else ""
    except OSError:
        return ""


def _replaced(text: str) -> str:
    text = text.replace("\0", "").replace("\\\n", "")
    for _ in range(3):  # `$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)`
        for pattern, replacement in _REPLACED:
            text = pattern.sub(replacement, text)
    return text


def _assigned(text: str) -> Iterator[list[str]]:
    """The paths of each assignment to `PYTHONPATH`, with the values that variables have there."""
    values: dict[str, str | None] = {}
    for match in _ASSIGNED.finditer(text):
        name, value = match["name"], re.sub("[\"']", "", _OPTIONAL.sub("", match["value"]))
        entries = [_filled(entry, values) for entry in value.split(":")]
        if name == "PYTHONPATH":
            yield [entry for entry in entries if entry]
        else:
            # A variable that is set twice may have either value.
            values[name] = entries[0] if len(entries) == 1 and values.get(name, entries[0]) == entries[0] else None


def _filled(entry: str, values: Mapping[str, str | None]) -> str | None:
    """The path with its variables' values; `None` where one is unknown."""
    if any(values.get("".join(groups)) is None for groups in _VARIABLE.findall(entry)):
        return None
    return _VARIABLE.sub(lambda match: values["".join(filter(None, match.groups()))] or "", entry)


def _folder(entry: str, path: str, working: str) -> str | None:
    if entry.startswith(_WORKING):
        entry = entry.removeprefix(_WORKING).lstrip("/")
    elif entry.startswith(_OWN):
        # From the script itself, whose own name a first `..` takes away.
        entry, working = entry.removeprefix(_OWN).lstrip("/"), path
    if "\0" in entry or entry.startswith(("/", "~")) or not re.fullmatch(r"[\w./ +@-]*", entry):
        return None
    folder = posixpath.normpath(posixpath.join(working, entry))
    return None if folder.startswith("..") else "" if folder == "." else folder
