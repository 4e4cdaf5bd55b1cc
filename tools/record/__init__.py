"""Runs the original on examples, and records how its modules are built and called, and what their expressions evaluate to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.session import plan
from migrate_agent.tools.record.store import NAME, example_to_json, load_recording, merge_recordings, read_json, save_recording
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Recording, Run

if TYPE_CHECKING:
    from migrate_agent.tools.import_closure import Parts

__all__ = ["load_recording", "merge_recordings", "record", "save_recording"]

ENTRY = "migrate_agent.tools.record.worker:record_examples"
LIMITS = Limits()
MAX_BYTES = 64 * 2**20
"""Bytes of recorded tensors for each unit."""


def record(
    inventory: Inventory, examples: Sequence[Example], sandbox: Sandbox, folder: Path, limits: Limits = LIMITS, max_bytes: int = MAX_BYTES
) -> Recording:
    """Run the examples in the sandbox (original side) and store the recording under `folder`.

    The examples run in one job, or in one for each project where projects have files of the same
    name. Where a job dies, each of its examples runs in a job of its own. The
    result holds the examples that ran, examples with origin `recording` for the module classes that
    were built and called on the way, the observations, and one line for each unit whose example
    failed. Raises `KeyError` for an example whose unit the inventory lacks.
    """
    if not examples:
        return Recording()
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for number, (visible, needed, group) in enumerate(_by_process(inventory, examples)):
        prefix = f"p{number}-" if number else ""
        together, status = _run(visible, needed, group, sandbox, limits, max_bytes, folder, prefix)
        # One example that crashes the process takes the results of all others with it; alone it loses
        # its own.
        if status != "ok" and len(group) > 1:
            alone = enumerate(group)
            parts += [
                _run(visible, needed, [example], sandbox, limits, max_bytes, folder, f"{prefix}{index}-")[0] for index, example in alone
            ]
        else:
            parts.append(together)
    return save_recording(merge_recordings(parts), folder)


def _by_process(inventory: Inventory, examples: Sequence[Example]) -> list[tuple[Inventory, Parts, list[Example]]]:
    """The examples that can run in one process, with the files that they see and what they need of these.

    One whose files are scripts runs alone: what another needs of a script may not run.
    """
    from migrate_agent.tools.import_closure import merged_parts, needed_parts, runs_scripts  # here alone: see `session.plan`
    from migrate_agent.tools.scan.visible import visible_from

    groups: dict[tuple[int, int], tuple[Inventory, list[Parts], list[Example]]] = {}
    for index, example in enumerate(examples):
        unit = inventory.unit(example.unit)
        visible, needed = visible_from(inventory, unit.source), needed_parts(inventory, unit, [example])
        group = groups.setdefault((id(visible), index if runs_scripts(needed) else -1), (visible, [], []))
        group[1].append(needed)
        group[2].append(example)
    return [(visible, merged_parts(needed), group) for visible, needed, group in groups.values()]


def _run(
    inventory: Inventory,
    parts: Parts,
    examples: Sequence[Example],
    sandbox: Sandbox,
    limits: Limits,
    max_bytes: int,
    folder: Path,
    prefix: str,
) -> tuple[Recording, str]:
    """One job: what it recorded, copied to `folder`, and how it ended."""
    run = sandbox.run(_job(inventory, parts, examples, limits, max_bytes))
    try:
        return _collect(run, examples, folder, prefix), run.status
    finally:
        sandbox.release(run)


def _job(inventory: Inventory, parts: Parts, examples: Sequence[Example], limits: Limits, max_bytes: int) -> Job:
    modules = {file.path: file.module for file in inventory.files}
    rows = [{**example_to_json(example), "module": modules[inventory.unit(example.unit).source]} for example in examples]
    arguments = {**plan(inventory), "parts": parts, "examples": rows, "max_bytes": max_bytes, "check_seconds": limits.seconds / 4}
    inputs = {f"tensors{index}": example.tensors for index, example in enumerate(examples) if example.tensors}
    return Job("original", ENTRY, inventory.root, arguments, inputs, limits)


def _collect(run: Run, examples: Sequence[Example], folder: Path, prefix: str) -> Recording:
    """Copy what the job wrote. The job ran the user's code, so its files are read as data that may be anything."""
    if run.status != "ok":
        return Recording(errors={example.unit: run.error or run.status for example in examples})
    try:
        recording = read_json(run.output / NAME)
    except (OSError, ValueError) as error:
        return Recording(errors={example.unit: f"the recording could not be read: {error}" for example in examples})
    ran = [example for index, example in enumerate(examples) if index in _ran(run)]
    nested = (replace(example, tensors=_copy(example.tensors, folder, prefix)) for example in recording.examples)
    calls = tuple(replace(call, tensors=_copy(call.tensors, folder, prefix)) for call in recording.kernel_calls)
    return replace(recording, examples=(*ran, *nested), kernel_calls=calls)


def _ran(run: Run) -> list[object]:
    indices = run.result.get("ran") if isinstance(run.result, dict) else None
    return indices if isinstance(indices, list) else []


def _copy(tensors: Path | None, folder: Path, prefix: str) -> Path | None:
    if tensors is None:
        return None
    target = folder / f"{prefix}{tensors.name}"
    # The job ran the user's code: a link in its output could point at any file of this machine.
    shutil.copyfile(tensors, target, follow_symlinks=False)
    return target
