"""record: run the original on the examples, and note what reaches each class and what each expression is."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

from migrate_agent.agent.context import Context
from migrate_agent.agent.exercise import Exercise, reached
from migrate_agent.agent.recordings import examples_of, kept
from migrate_agent.agent.state import Plan, RunState
from migrate_agent.agent.store import write
from migrate_agent.tools.record.store import save_recording
from migrate_agent.tools.scan.plan import leaf_first
from migrate_agent.tools.types import Inventory, Recording


def record(context: Context, state: RunState) -> RunState:
    """Write `recorded/` and `plan.json`.

    The configuration, the convention and the stored recording come first, inference where nothing reached a unit.
    """
    context.progress.stage("", "running the original on its examples")
    folder = context.folder / "recording"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stored, changed = kept(context.folder.home, context.original)
    if changed:
        context.progress.warn(f"the recording is older than {', '.join(changed[:3])}: record again; what it says of them is left out")
    exercise = Exercise(context.services, context.config, context.inventory, context.sandbox, folder)
    recording = exercise.known(stored)
    for identifier in reversed(context.scope.order):  # those that need others first: one of theirs often reaches the others
        if not reached(recording, identifier):
            context.progress.stage(identifier, "guessing an example")
            recording = exercise.guessed(context.inventory.unit(identifier), recording)
    shutil.rmtree(context.folder / "recorded", ignore_errors=True)
    save_recording(recording, context.folder / "recorded")
    write(context.folder / "plan.json", reordered(context.scope, context.inventory, recording))
    return {"outcome": "recorded"}


def reordered(plan: Plan, inventory: Inventory, recording: Recording) -> Plan:
    """The plan with each unit after those that its examples name, such as a block class that is passed to a network's constructor."""
    units = [inventory.unit(identifier) for identifier in plan.order]
    known = [replace(unit, needs=(*unit.needs, *_named(inventory, recording, unit.id))) for unit in units]
    return replace(plan, order=tuple(unit.id for unit in leaf_first(known)))


def _named(inventory: Inventory, recording: Recording, identifier: str) -> list[str]:
    texts = (f"{example.setup} {example.init}" for example in examples_of(recording, identifier))
    words = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    return [unit.id for unit in inventory.units if unit.name.rpartition(".")[2] in words and unit.id != identifier]
