"""A guessed example for a unit that no other example runs: from signature, annotations, parameter names and layers."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.session import plan
from migrate_agent.tools.types import Example, Inventory, Job, Limits, Unit

ENTRY = "migrate_agent.tools.record.guess:guess_example"
LIMITS = Limits(seconds=60.0)


def infer(inventory: Inventory, unit: Unit, sandbox: Sandbox, folder: Path, limits: Limits = LIMITS) -> Example | None:
    """The first guess that builds, runs and gives finite tensors, found by trying a bounded number in the sandbox; else `None`.

    `folder` is not written to (guesses need no tensors); it stands in the signature for those that do.
    """
    from migrate_agent.tools.import_closure import needed_parts  # here alone: see `session.plan`
    from migrate_agent.tools.scan.visible import visible_from

    module = next(file.module for file in inventory.files if file.path == unit.source)
    arguments = {
        **plan(visible_from(inventory, unit.source)),
        "module": module,
        "name": unit.name,
        "parts": needed_parts(inventory, unit, ()),
        "seconds": limits.seconds / 2,
    }
    run = sandbox.run(Job("original", ENTRY, inventory.root, arguments, {}, limits))
    sandbox.release(run)
    guess = run.result if run.status == "ok" else None
    # The job ran the user's code, so its result may be anything.
    if not isinstance(guess, dict) or not all(isinstance(guess.get(part), str) for part in ("init", "call")):
        return None
    return Example(unit.id, guess["init"], guess["call"], origin="inference")
