"""The file that describes a port (`--weights FILE`, TOML or JSON): how it is built and called, and where its weights lie (docs/verify/ports.md)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KINDS = ("nnx", "linen", "equinox", "function")
KEYS: Mapping[str, type | tuple[type, ...]] = {
    "kind": str,
    "setup": str,
    "init": str,
    "params": str,
    "train": str,
    "eval": str,
    "key": str,
    "rngs": list,
    "vmap": bool,
    "initialisation": bool,
    "weights": dict,
}
ROW = {"path", "transpose", "reshape", "index", "part"}


class PortFileError(ValueError):
    """An invalid file; one line of reason."""


def load(path: Path) -> dict[str, Any]:
    """Read and check the file. Raises `PortFileError`, `OSError`."""
    text = path.read_text(encoding="utf-8")
    try:
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise PortFileError(f"{path.name}: {error}") from error
    if not isinstance(document, dict):
        raise PortFileError(f"{path.name}: must be a table")
    if problem := _problem(document):
        raise PortFileError(f"{path.name}: {problem}")
    return document


def parse(text: str) -> dict[str, Any]:
    """What a text in TOML says. Raises `PortFileError`."""
    document = tomllib.loads(text)
    if problem := _problem(document):
        raise PortFileError(problem)
    return document


def _problem(document: Mapping[str, Any]) -> str:
    for key, value in document.items():
        if key not in KEYS:
            return f"unknown key `{key}`: known here are {', '.join(KEYS)}"
        if not isinstance(value, KEYS[key]):
            return f"`{key}` must be a {KEYS[key].__name__ if isinstance(KEYS[key], type) else KEYS[key]}"  # type: ignore[union-attr]
    if document.get("kind", KINDS[0]) not in KINDS:
        return f"`kind` must be one of {', '.join(KINDS)}"
    for name, row in document.get("weights", {}).items():
        if isinstance(row, str) or row is False:
            continue
        if not isinstance(row, dict) or "path" not in row or set(row) - ROW:
            return f"`weights`: {name} must be a path, false, or a table of path, transpose, reshape, index, part"
    return ""
