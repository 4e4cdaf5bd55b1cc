"""Files of a run: typed values as JSON, written so that a kill at any moment leaves the old file or the new one."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from migrate_agent.agent.config.secrets import redacted

T = TypeVar("T")


def write_text(path: Path, text: str) -> None:
    """Write a file atomically and durably, without the user's keys; folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Renaming is atomic, but without fsync a power cut may leave an empty file under the final name.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(redacted(text))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def write(path: Path, value: Any) -> None:
    """Write a dataclass (or plain data) as JSON."""
    write_text(path, json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n")


def read(path: Path, kind: type[T]) -> T:
    """Read what `write` wrote back as `kind`. Raises `FileNotFoundError`, and `pydantic.ValidationError` for a file that is not such."""
    return as_kind(json.loads(path.read_text(encoding="utf-8")), kind)


def as_kind(value: Any, kind: type[T]) -> T:
    """Plain data, as `plain` gave it, as `kind`. Raises `pydantic.ValidationError` for data that are not such."""
    result: T = _adapter(cast(Any, kind)).validate_python(value)
    return result


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def plain(value: Any) -> Any:
    """Dataclasses, tuples, paths and mappings as what JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
