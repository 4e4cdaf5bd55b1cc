"""Runs the original on examples, and records how its modules are built and called, and what their expressions evaluate to."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.jobs import by_process, indices, job
from migrate_agent.tools.record.store import NAME, load_recording, merge_recordings, read_json, save_recording
from migrate_agent.tools.types import Example, Inventory, Limits, Recording, Run

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
    name. Where a job dies, each of its examples runs in a job of its own, and so does one whose file
    could not be imported with what the others need of it. The
    result holds the examples that ran, examples with origin `recording` for the module classes that
    were built and called on the way, the observations, and one line for each unit whose example
    failed. Raises `KeyError` for an example whose unit the inventory lacks.
    """
    if not examples:
        return Recording()
    from migrate_agent.tools.import_closure import needed_parts  # here alone: see `session.plan`

    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for number, (visible, needed, group) in enumerate(by_process(inventory, examples)):
        prefix = f"p{number}-" if number else ""
        together = _run(visible, needed, group, sandbox, limits, max_bytes, folder, prefix)
        alone = _alone(together, group)
        if not alone:
            parts.append(together.recording)
            continue
        if len(alone) < len(group):
            retried = {group[index].unit for index in alone}
            errors = {unit: error for unit, error in together.recording.errors.items() if unit not in retried}
            parts.append(replace(together.recording, errors=errors))
        for index in alone:
            example = group[index]
            own = needed if together.status != "ok" else needed_parts(visible, visible.unit(example.unit), [example])
            parts.append(_run(visible, own, [example], sandbox, limits, max_bytes, folder, f"{prefix}{index}-").recording)
    return save_recording(merge_recordings(parts), folder)


@dataclass(frozen=True)
class _Job:
    """What one job recorded, how it ended, and the indices of the examples whose files could not be imported."""

    recording: Recording
    status: str
    unimported: tuple[int, ...] = ()


def _alone(job: _Job, group: Sequence[Example]) -> Sequence[int]:
    """The examples of a job, by index, that another one may have kept from running.

    One that crashes the process takes the results of all others with it. One that needs a package which is not installed takes
    those along whose files are imported with what it needs of them.
    """
    if len(group) == 1:
        return ()
    return range(len(group)) if job.status != "ok" else job.unimported


def _run(
    inventory: Inventory,
    parts: Parts,
    examples: Sequence[Example],
    sandbox: Sandbox,
    limits: Limits,
    max_bytes: int,
    folder: Path,
    prefix: str,
) -> _Job:
    """One job: what it recorded, copied to `folder`, and how it ended."""
    run = sandbox.run(job(ENTRY, inventory, parts, examples, limits, max_bytes))
    try:
        unimported = [index for index in indices(run, "unimported") if index in range(len(examples))]
        return _Job(_collect(run, examples, folder, prefix), run.status, tuple(unimported))
    finally:
        sandbox.release(run)


def _collect(run: Run, examples: Sequence[Example], folder: Path, prefix: str) -> Recording:
    """Copy what the job wrote. The job ran the user's code, so its files are read as data that may be anything."""
    if run.status != "ok":
        return Recording(errors={example.unit: run.error or run.status for example in examples})
    try:
        recording = read_json(run.output / NAME)
    except (OSError, ValueError) as error:
        return Recording(errors={example.unit: f"the recording could not be read: {error}" for example in examples})
    ran = [example for index, example in enumerate(examples) if index in indices(run, "ran")]
    nested = (replace(example, tensors=_copy(example.tensors, folder, prefix)) for example in recording.examples)
    calls = tuple(replace(call, tensors=_copy(call.tensors, folder, prefix)) for call in recording.kernel_calls)
    return replace(recording, examples=(*ran, *nested), kernel_calls=calls)


def _copy(tensors: Path | None, folder: Path, prefix: str) -> Path | None:
    if tensors is None:
        return None
    target = folder / f"{prefix}{tensors.name}"
    # The job ran the user's code: a link in its output could point at any file of this machine.
    shutil.copyfile(tensors, target, follow_symlinks=False)
    return target
