"""Running the original on examples, and noting how its modules are built, called, and what their expressions evaluate to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.session import plan
from migrate_agent.tools.record.store import NAME, example_to_json, load_recording, merge_recordings, read_json, save_recording
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Recording, Run

__all__ = ["load_recording", "merge_recordings", "record", "save_recording"]

ENTRY = "migrate_agent.tools.record.worker:record_examples"
LIMITS = Limits()
MAX_BYTES = 64 * 2**20
"""Recorded tensors kept for each unit."""


def record(
    inventory: Inventory, examples: Sequence[Example], sandbox: Sandbox, folder: Path, limits: Limits = LIMITS, max_bytes: int = MAX_BYTES
) -> Recording:
    """Run the examples in the sandbox (original side) and store what was seen under `folder`.

    All examples run in one job; where that dies, each runs alone, so that one bad example costs the others nothing. The result holds the
    examples that ran, further ones (origin `recording`) for the module classes that were built and called on the way, the observations,
    and one line per unit whose example failed. Examples of units that the inventory lacks raise `KeyError`.
    """
    if not examples:
        return Recording()
    folder.mkdir(parents=True, exist_ok=True)
    together, status = _run(inventory, examples, sandbox, limits, max_bytes, folder, "")
    parts = [together]
    if status != "ok" and len(examples) > 1:
        alone = enumerate(examples)
        parts = [_run(inventory, [example], sandbox, limits, max_bytes, folder, f"{index}-")[0] for index, example in alone]
    return save_recording(merge_recordings(parts), folder)


def _run(
    inventory: Inventory, examples: Sequence[Example], sandbox: Sandbox, limits: Limits, max_bytes: int, folder: Path, prefix: str
) -> tuple[Recording, str]:
    """One job: what it recorded, copied to `folder`, and how it ended."""
    run = sandbox.run(_job(inventory, examples, limits, max_bytes))
    try:
        return _collect(run, examples, folder, prefix), run.status
    finally:
        sandbox.release(run)


def _job(inventory: Inventory, examples: Sequence[Example], limits: Limits, max_bytes: int) -> Job:
    modules = {file.path: file.module for file in inventory.files}
    rows = [{**example_to_json(example), "module": modules[inventory.unit(example.unit).source]} for example in examples]
    arguments = {**plan(inventory), "examples": rows, "max_bytes": max_bytes, "check_seconds": limits.seconds / 4}
    inputs = {f"tensors{index}": example.tensors for index, example in enumerate(examples) if example.tensors}
    return Job("original", ENTRY, inventory.root, arguments, inputs, limits)


def _collect(run: Run, examples: Sequence[Example], folder: Path, prefix: str) -> Recording:
    """Copy what the job wrote. The job ran the user's code, so its files are read as data that may be anything."""
    if run.status != "ok":
        return Recording(errors={example.unit: run.error or run.status for example in examples})
    try:
        found = read_json(run.output / NAME)
    except (OSError, ValueError) as error:
        return Recording(errors={example.unit: f"the recording could not be read: {error}" for example in examples})
    ran = [example for index, example in enumerate(examples) if index in _ran(run)]
    nested = (replace(example, tensors=_copy(example.tensors, folder, prefix)) for example in found.examples)
    calls = tuple(replace(call, tensors=_copy(call.tensors, folder, prefix)) for call in found.kernel_calls)
    return replace(found, examples=(*ran, *nested), kernel_calls=calls)


def _ran(run: Run) -> list[object]:
    found = run.result.get("ran") if isinstance(run.result, dict) else None
    return found if isinstance(found, list) else []


def _copy(tensors: Path | None, folder: Path, prefix: str) -> Path | None:
    if tensors is None:
        return None
    target = folder / f"{prefix}{tensors.name}"
    shutil.copyfile(tensors, target, follow_symlinks=False)
    return target
