"""record: run the original on the examples, and note what reaches each class and what each expression is."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace

from migrate_agent.agent.config.json_files import write
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.exercising.exercise import Exercise, is_reached
from migrate_agent.agent.loop.exercising.searches import searches
from migrate_agent.agent.loop.nodes.plan import widen_scope
from migrate_agent.agent.runs.class_text import is_called, public_methods
from migrate_agent.agent.runs.recordings import examples_of, stored_recording
from migrate_agent.agent.runs.state import NearestGuess, Plan, RunState
from migrate_agent.tools.record.programs import FILE_SECONDS, explored_files
from migrate_agent.tools.record.store import save_recording
from migrate_agent.tools.scan.plan import dependency_groups
from migrate_agent.tools.types import Example, Inventory, Recording, Unit

GUESSING_SECONDS = 900.0
"""For all units of a run together."""


def record(context: Context, state: RunState) -> RunState:
    """Write `recorded/` and `plan.json`.

    The configuration, the convention and the stored recording come first, inference where nothing reached a unit.
    """
    context.progress.stage("", "running the original on its examples")
    folder = context.folder / "recording"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stored, changed = stored_recording(context.folder.home, context.original)
    if changed:
        context.progress.warn(f"the recording is older than {', '.join(changed[:3])}: record again; what it says of them is left out")
    exercise = Exercise(context.services, context.config, context.inventory, context.sandbox, folder)
    recording = exercise.run_given(stored)
    failed_examples = {}
    for example in context.services.examples(context.inventory, context.config):
        if example not in recording.examples and example.unit in recording.errors:
            failed_examples[example.unit] = recording.errors[example.unit]
    for identifier, error in failed_examples.items():
        context.progress.warn(f"an example of {identifier} does not run, and is left out: {error}")
    recording = _watched(context, exercise, recording)
    recording, nearest = _guessed(context, exercise, recording)
    widen_scope(context, recording.examples)
    units = [context.inventory.unit(identifier) for identifier in context.scope.order]
    context.progress.stage("", "looking for calls that reach more of the original")
    recording = exercise.add_further(units, recording)
    context.progress.stage("", "looking for calls of methods")
    recording = exercise.add_methods(units, recording, lambda unit: context.progress.stage(unit.id, "looking for calls of its methods"))
    shutil.rmtree(context.folder / "recorded", ignore_errors=True)
    save_recording(recording, context.folder / "recorded")
    write(context.folder / "plan.json", replace(reordered(context, recording), failed_examples=failed_examples, guesses=nearest))
    return {"outcome": "recorded"}


def _watched(context: Context, exercise: Exercise, recording: Recording) -> Recording:
    """The recording, grown by what the repository itself shows of units that nothing reached: tests and scripts only where that was asked for."""
    if context.settings.explore:
        paths = explored_files(context.inventory)
        context.progress.note(f"--explore runs, each for at most {FILE_SECONDS:g} seconds in the sandbox: {', '.join(paths) or 'nothing'}")
        recording = exercise.add_explored(paths, recording)
    missing = [identifier for identifier in context.scope.order if not is_reached(recording, identifier)]
    return exercise.add_shown(missing, recording)


def _guessed(context: Context, exercise: Exercise, recording: Recording) -> tuple[Recording, dict[str, NearestGuess]]:
    """The recording, grown by guesses for units that nothing reached; and of those for which none ran, the one that came furthest."""
    nearest: dict[str, NearestGuess] = {}
    end = time.monotonic() + GUESSING_SECONDS
    # Those that need others first: one of theirs often reaches the others.
    units = [context.inventory.unit(identifier) for identifier in reversed(context.scope.order)]
    waiting = [unit for unit in units if _may_be_guessed(context, recording, unit)]
    with searches(exercise.search) as begun:
        while waiting:
            unit = waiting[0]
            if time.monotonic() > end:
                context.progress.warn(f"no more examples are guessed after {GUESSING_SECONDS:g} seconds: {unit.id} and others have none")
                break
            context.progress.stage(unit.id, f"guessing an example ({len(waiting)} units left without one)")
            guess = begun.guess(waiting)
            recording = exercise.add_found(unit, guess, recording)
            if guess.nearest is not None:
                nearest[unit.id] = NearestGuess(
                    guess.nearest.init, guess.nearest.call, guess.nearest.setup, guess.error, guess.nearest.method
                )
            elif guess.imported is None and guess.error:  # the search itself broke, before it had a guess
                nearest[unit.id] = NearestGuess("", "", "", guess.error, is_tried=False)
            waiting = [other for other in waiting[1:] if not is_reached(recording, other.id)]
        parts = [unit for unit in units if _is_part_alone(recording, unit)]
        for number, unit in enumerate(parts):
            if time.monotonic() > end:
                break
            context.progress.stage(
                unit.id, f"guessing a call of it alone ({len(parts) - number} units left that ran as parts of others only)"
            )
            recording = exercise.add_alone(unit, begun.guess(parts[number:]), recording)
    return recording, nearest


def _is_part_alone(recording: Recording, unit: Unit) -> bool:
    """Whether a unit runs as a part of others, in calls of which none can be given to both sides."""
    return unit.id in recording.inside and unit.id not in recording.errors and not examples_of(recording, unit.id)


def _may_be_guessed(context: Context, recording: Recording, unit: Unit) -> bool:
    """Whether nothing reached a unit that can be called; of a module without `forward`, a method of its own."""
    file = context.original / unit.source
    if is_reached(recording, unit.id) or not (is_called(file, unit.name) or public_methods(file, unit.name)):
        return False
    return is_called(file, unit.name) or not examples_of(recording, unit.id)


def reordered(context: Context, recording: Recording) -> Plan:
    """The plan with each unit after those whose rewrites its own names, and after those that its examples name (a block class, say)."""
    inventory, plan = context.inventory, context.scope
    units = [_with_needs(context, recording, inventory.unit(identifier)) for identifier in plan.order]
    together = dependency_groups(units)
    runs = {example.unit for example in recording.examples}
    cycles = (tuple(unit.id for unit in group if unit.id in runs) for group in together)
    order = tuple(unit.id for group in together for unit in group)
    return replace(plan, order=order, cycles=tuple(cycle for cycle in cycles if len(cycle) > 1))


def _with_needs(context: Context, recording: Recording, unit: Unit) -> Unit:
    """The unit with what its rewrite names as its needs: of one that no example runs, what its source names."""
    examples = examples_of(recording, unit.id)
    if not examples:
        return unit
    try:
        mentioned = context.services.mentions(context.inventory, recording.observations, unit.id, examples)
    except Exception:  # the rewriter's fault comes up again in the unit's turn, and is told there
        mentioned = unit.needs
    return replace(unit, needs=(*mentioned, *_named(context.inventory, examples, unit.id)))


def _named(inventory: Inventory, examples: Sequence[Example], identifier: str) -> list[str]:
    words = {word for example in examples for word in re.findall(r"[A-Za-z_]\w*", f"{example.setup} {example.init}")}
    return [unit.id for unit in inventory.units if unit.name.rpartition(".")[2] in words and unit.id != identifier]
