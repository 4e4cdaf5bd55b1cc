"""Reads every file of a repository once, and stores facts, not syntax trees: thousands of files fit in little memory."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from migrate_agent.tools.scan.detectors import Hit, detect
from migrate_agent.tools.scan.exports import Exports, parse
from migrate_agent.tools.scan.facts import Facts, read_facts
from migrate_agent.tools.scan.function_shapes import FunctionShape, function_shapes
from migrate_agent.tools.scan.walk import SourceError, read_source
from migrate_agent.tools.types import SourceFile


class Reading(NamedTuple):
    """The facts, detector hits and functions of one file, or (one line) why it cannot be read."""

    facts: Facts
    hits: tuple[Hit, ...] = ()
    error: str = ""
    functions: Mapping[str, FunctionShape] = MappingProxyType({})


def read_file(root: Path, file: SourceFile) -> Reading:
    """Read one file. Never raises for its content."""
    try:
        tree = parse(read_source(root / file.path))
        facts, uses = read_facts(tree, file)
        return Reading(facts, detect(uses), functions=function_shapes(tree))
    except SourceError as error:
        return Reading(Facts(Exports()), error=str(error))
    except RecursionError:
        return Reading(Facts(Exports()), error="line 1: nested too deeply to read")


def survey(root: Path, files: Iterable[SourceFile]) -> Mapping[str, Reading]:
    """Path → reading, for all files."""
    with _without_garbage_collection():
        return {file.path: read_file(root, file) for file in files}


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch garbage collection off: syntax trees are many small objects without circles, which it would walk for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
