"""One draft laid out as a tree of its own and judged against the base commit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.types import Draft, Evidence, Unit, Verdict
from migrate_agent.tools.verify.evidence.recorded_kernels import judge as judge_recorded


def verify_draft(context: Context, unit: Unit, draft: Draft, folder: Path, tell: Callable[[str], None]) -> Evidence:
    """Verify the draft's `unit`. `folder` receives the candidate tree and the inputs; `tell` is called with the name of each stage.

    What takes the place of a kernel is run first, on the recorded inputs of the kernel. Where its outputs differ, no other stage runs.

    Raises `Untranslatable` where an example has no equivalent in the mirror's names, and what the sandbox raises.
    """
    recording, inventory = context.recording, context.inventory
    examples = examples_of(recording, unit.id)
    candidate = lay_out(folder / "candidate", draft.files)
    translated = [context.services.translate(inventory, recording.observations, example) for example in examples]
    inputs = folder / "verify"
    shutil.rmtree(inputs, ignore_errors=True)
    inputs.mkdir()
    recorded = judge_recorded(recording.kernel_calls, unit, inventory, candidate, context.sandbox, context.config.limits.limits())
    # A replacement that is wrong on recorded inputs is wrong for every example that runs it, and this costs seconds.
    if recorded is not None and recorded.status == "fail":
        return Evidence(unit.id, (recorded,))
    arguments = (unit, examples, translated, context.original, candidate, inventory, context.sandbox, inputs, context.config)
    return with_recorded(context.services.verify(*arguments, tell, True), recorded)


def with_recorded(evidence: Evidence, recorded: Verdict | None) -> Evidence:
    """The evidence with what the recorded calls of kernels say."""
    return evidence if recorded is None else replace(evidence, verdicts=(*evidence.verdicts, recorded))


def lay_out(folder: Path, files: Mapping[str, str]) -> Path:
    """Exactly these files as a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path, text in files.items():
        write_text(folder / path, text)
    return folder
