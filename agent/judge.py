"""One draft laid out as a tree of its own and judged against the base commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from migrate_agent.agent.recordings import examples_of
from migrate_agent.agent.store import write_text
from migrate_agent.tools.types import Draft, Evidence, Unit

if TYPE_CHECKING:
    from migrate_agent.agent.context import Context


def judge(context: Context, unit: Unit, draft: Draft, folder: Path, tell: Callable[[str], None]) -> Evidence:
    """Verify the draft's `unit`; `folder` receives the tree and what the candidate is given. `tell` is called with the name of each stage.

    Raises `Untranslatable` where an example has no equivalent in the mirror's names, and what the sandbox raises.
    """
    recording, inventory = context.recording, context.inventory
    examples = examples_of(recording, unit.id)
    candidate = lay_out(folder / "candidate", draft.files)
    translated = [context.services.translate(inventory, recording.observations, example) for example in examples]
    given = folder / "verify"
    shutil.rmtree(given, ignore_errors=True)
    given.mkdir()
    arguments = (unit, examples, translated, context.original, candidate, inventory, context.sandbox, given, context.config)
    return context.services.verify(*arguments, tell)


def lay_out(folder: Path, files: Mapping[str, str]) -> Path:
    """Exactly these files as a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, text in files.items():
        write_text(folder / path, text)
    return folder
