"""Jobs that run examples of the original: which run in one process, and what they are handed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from migrate_agent.tools.record.session import plan
from migrate_agent.tools.record.store import example_to_json
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Run

if TYPE_CHECKING:
    from migrate_agent.tools.import_closure import Parts


def by_process(inventory: Inventory, examples: Sequence[Example]) -> list[tuple[Inventory, Parts, list[Example]]]:
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


def job(entry: str, inventory: Inventory, parts: Parts, examples: Sequence[Example], limits: Limits, max_bytes: int) -> Job:
    """The job that runs these examples by the function `entry`; those of one group of `by_process`."""
    from migrate_agent.tools.import_closure import first_roots  # here alone: see `session.plan`

    modules = {file.path: file.module for file in inventory.files}
    rows = [{**example_to_json(example), "module": modules[inventory.unit(example.unit).source]} for example in examples]
    roots = [root for example in examples for root in first_roots(inventory, inventory.unit(example.unit), [example])]
    arguments = {
        **plan(inventory, dict.fromkeys(roots)),
        "parts": parts,
        "examples": rows,
        "max_bytes": max_bytes,
        "check_seconds": limits.seconds / 4,
    }
    inputs = {f"tensors{index}": example.tensors for index, example in enumerate(examples) if example.tensors}
    return Job("original", entry, inventory.root, arguments, inputs, limits)


def indices(run: Run, key: str) -> list[int]:
    """Numbers of examples that a job gave under this key: it ran the user's code, and may have given anything."""
    indices = run.result.get(key) if isinstance(run.result, dict) else None
    return [index for index in indices if isinstance(index, int)] if isinstance(indices, list) else []
