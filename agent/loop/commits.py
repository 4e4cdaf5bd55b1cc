"""The commit of one verified unit: its target files, and the record of what was verified against which text."""

from __future__ import annotations

from migrate_agent.agent.config.json_files import read
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.unreached import earlier_reaches, lifted
from migrate_agent.agent.loop.verified_units import Present, record_path, verified_record
from migrate_agent.agent.runs.commit_message import unit_message
from migrate_agent.agent.runs.recordings import examples_of
from migrate_agent.tools.types import Draft, Evidence, Unit


def commit_unit(context: Context, unit: Unit, draft: Draft, evidence: Evidence, head: str, number: int) -> str:
    """Commit a unit on top of `head` as the run's `number`-th commit, and return its id.

    Doing this again after a kill gives the same commit: files, message and date follow from the run's folder alone.
    """
    files = {**draft.files, record_path(unit.source, unit.name): _verified_text(context, unit, draft, evidence)}
    files |= _changed_records(context, unit, draft, evidence)
    return context.branch.commit(head, files, unit_message(unit, evidence, context.settings.base), number)


def _verified_text(context: Context, unit: Unit, draft: Draft, evidence: Evidence) -> str:
    """The text of the unit's file under `.migrate/verified/`."""
    examples = context.services.examples(context.inventory, context.config)
    origin = next((example.origin for example in examples_of(context.recording, unit.id)), "")
    return verified_record(Present(context.inventory, examples, draft.files), unit, evidence, origin).text()


def _changed_records(context: Context, unit: Unit, draft: Draft, evidence: Evidence) -> dict[str, str]:
    """Path → text of the files of earlier units whose ports hold lines now that were stubs when they were committed: this unit ran them."""
    position = context.plan.order.index(unit.id)
    earlier = earlier_reaches(context, position)
    if evidence.reach is None or not lifted(tuple(earlier.values()), evidence.reach):
        return {}
    records = {}
    for identifier in earlier:
        other, folder = context.inventory.unit(identifier), context.unit_folder(context.plan.order.index(identifier))
        records[record_path(other.source, other.name)] = _verified_text(context, other, draft, read(folder / "evidence.json", Evidence))
    return records
