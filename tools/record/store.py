"""Recordings on disk: `recording.json` and safetensors files beside it; nothing that runs code when it is opened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrate_agent.tools.record.observe import CHANGES, merge
from migrate_agent.tools.types import Example, KernelCall, Observations, Observed, Recording, Span

NAME = "recording.json"
APART = "apart.json"
"""What each of several examples showed, apart from the others."""
LARGEST = 2**28
"""Largest number of bytes of JSON that is read, of a recording or of a tensors file's header: the user's code may have written them."""


def example_to_json(example: Example) -> dict[str, Any]:
    """Plain data of an example; of the tensors file the name only."""
    return {
        "unit": example.unit,
        "init": example.init,
        "call": example.call,
        "setup": example.setup,
        "train": example.train,
        "domain": list(example.domain) if example.domain else None,
        "origin": example.origin,
        "tensors": example.tensors.name if example.tensors else None,
        **({"method": example.method} if example.method else {}),
        **({"full": example.full} if example.full else {}),
    }


def example_from_json(data: Mapping[str, Any], folder: Path) -> Example:
    """The example, with its tensors file in `folder`. Raises `ValueError` on a name that leads out of it or to no plain file."""
    tensors = _tensors(data, folder)
    domain = data.get("domain")
    return Example(
        str(data["unit"]),
        str(data["init"]),
        str(data["call"]),
        str(data["setup"]),
        data.get("train"),
        (float(domain[0]), float(domain[1])) if domain else None,
        data.get("origin", "recording"),
        tensors,
        str(data.get("method", "")),
        str(data.get("full", "")),
    )


def _tensors(data: Mapping[str, Any], folder: Path) -> Path | None:
    if not data.get("tensors"):
        return None
    tensors = folder / str(data["tensors"])
    if tensors.name != data["tensors"] or tensors.is_symlink() or not tensors.is_file():
        raise ValueError(f"{data['tensors']} is no file of the recording in {folder}")
    return tensors


def kernel_call_to_json(call: KernelCall) -> dict[str, Any]:
    """Plain data of a call of a function that launches a kernel; of the tensors file the name only."""
    row = {"source": call.source, "name": call.name, "arguments": dict(call.arguments), "result": dict(call.result)}
    return {**row, "changed": list(call.changed), "tensors": call.tensors.name if call.tensors else None}


def kernel_call_from_json(data: Mapping[str, Any], folder: Path) -> KernelCall:
    """The inverse. Raises `ValueError` as `example_from_json` does."""
    trees = dict(data["arguments"]), dict(data["result"])
    return KernelCall(str(data["source"]), str(data["name"]), *trees, tuple(map(str, data["changed"])), _tensors(data, folder))


def observations_to_json(observations: Observations) -> dict[str, Any]:
    """File → rows of span, kinds, shapes, dtypes, whole, changed, causal."""
    return {
        path: [
            [
                *span,
                list(observed.kinds),
                [list(shape) for shape in observed.shapes],
                list(observed.dtypes),
                observed.whole,
                observed.changed,
                observed.causal,
            ]
            for span, observed in rows.items()
        ]
        for path, rows in observations.items()
    }


def observations_from_json(data: Mapping[str, Any]) -> dict[str, dict[Span, Observed]]:
    """The inverse of `observations_to_json`."""
    return {
        str(path): {
            Span(*(int(number) for number in row[:4])): Observed(
                tuple(map(str, row[4])),
                tuple(tuple(int(size) for size in shape) for shape in row[5]),
                tuple(map(str, row[6])),
                bool(row[7]),
                next((change for change in CHANGES if [change] == row[8:9]), ""),
                row[9] if len(row) > 9 and isinstance(row[9], bool) else None,
            )
            for row in rows
        }
        for path, rows in data.items()
    }


def merge_recordings(parts: Iterable[Recording]) -> Recording:
    """The union of the parts. Of equal examples and kernel calls the first one stays; a later error replaces an earlier one."""
    examples: dict[tuple[str, ...], Example] = {}
    observations: dict[str, dict[Span, Observed]] = {}
    errors: dict[str, str] = {}
    calls: dict[tuple[str, ...], KernelCall] = {}
    inside: dict[str, str] = {}
    for part in parts:
        for call in part.kernel_calls:
            calls.setdefault((call.source, call.name, json.dumps(call.arguments), *shapes(call.tensors)), call)
        for example in part.examples:
            examples.setdefault(
                (example.unit, example.method, example.init, example.call, example.setup, *shapes(example.tensors)), example
            )
        for path, rows in part.observations.items():
            merged = observations.setdefault(path, {})
            merged.update({span: merge(merged.get(span), observed) for span, observed in rows.items()})
        errors.update(part.errors)
        inside.update(part.inside)
    return Recording(tuple(examples.values()), observations, errors, tuple(calls.values()), inside)


def shapes(tensors: Path | None) -> tuple[str, ...]:
    """Names, shapes and dtypes in a safetensors file, from its header alone; of a file that is none, its name."""
    if tensors is None:
        return ()
    try:
        with tensors.open("rb") as file:
            header = json.loads(file.read(min(int.from_bytes(file.read(8), "little"), LARGEST)))
        return tuple(sorted(f"{name} {row['dtype']} {row['shape']}" for name, row in header.items() if name != "__metadata__"))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        # A file without a readable header counts as different from all others; `load` reports it
        # later.
        return (tensors.name,)


def write_json(recording: Recording, path: Path) -> None:
    """Write `recording.json`. The rename makes it appear whole."""
    data = {
        "version": 1,
        "examples": [example_to_json(example) for example in recording.examples],
        "observations": observations_to_json(recording.observations),
        "errors": dict(recording.errors),
        "kernel_calls": [kernel_call_to_json(call) for call in recording.kernel_calls],
        "inside": dict(recording.inside),
    }
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(data))
    scratch.replace(path)


def read_json(path: Path) -> Recording:
    """Read what `write_json` wrote; tensors lie beside it. Raises `ValueError` where it is no recording."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"more than {LARGEST} bytes")
        data = json.loads(path.read_text())
        if data["version"] != 1:
            raise ValueError(f"version {data['version']}")
        examples = tuple(example_from_json(row, path.parent) for row in data["examples"])
        errors = {str(unit): str(line) for unit, line in data["errors"].items()}
        calls = tuple(kernel_call_from_json(row, path.parent) for row in data.get("kernel_calls", ()))
        inside = {str(unit): str(line) for unit, line in data.get("inside", {}).items()}
        return Recording(examples, observations_from_json(data["observations"]), errors, calls, inside)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{path} is no recording: {error}") from error


def save_recording(recording: Recording, folder: Path) -> Recording:
    """Store a recording under `folder`, tensors included; returns it with the tensors' new paths."""
    folder.mkdir(parents=True, exist_ok=True)
    examples = tuple(replace(example, tensors=_copy_into(example.tensors, folder)) for example in recording.examples)
    calls = tuple(replace(call, tensors=_copy_into(call.tensors, folder)) for call in recording.kernel_calls)
    moved = replace(recording, examples=examples, kernel_calls=calls)
    write_json(moved, folder / NAME)
    return moved


def _copy_into(tensors: Path | None, folder: Path) -> Path | None:
    if tensors is None or tensors.parent.resolve() == folder.resolve():
        return tensors
    target = folder / tensors.name
    count = 0
    while target.exists() and target.read_bytes() != tensors.read_bytes():
        count += 1
        target = folder / f"{tensors.stem}-{count}{tensors.suffix}"
    shutil.copyfile(tensors, target)
    return target


def load_recording(folder: Path) -> Recording:
    """What `save_recording` stored. Raises `FileNotFoundError`, and `ValueError` where the file is no recording."""
    return read_json(folder / NAME)
