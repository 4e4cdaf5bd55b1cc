"""What no compared call ran of the drafts that are committed: stubs take its place, or a comment says so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from migrate_agent.agent.config.json_files import read
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.unit_work import load_draft
from migrate_agent.tools.types import Draft, Evidence, Reach
from migrate_agent.tools.verify.evidence.counted_file import counted_file
from migrate_agent.tools.verify.evidence.reach import is_stub
from migrate_agent.tools.verify.evidence.stubs import stubbed


def earlier_reaches(context: Context, position: int) -> dict[str, Reach]:
    """Id → what was reached of the port, of the units before a position of the plan that were committed."""
    reaches = {}
    for identifier in context.accepted(position):
        path = context.unit_folder(context.plan.order.index(identifier)) / "evidence.json"
        evidence = read(path, Evidence) if path.exists() else None
        if evidence is not None and evidence.reach is not None:
            reaches[identifier] = evidence.reach
    return reaches


def as_committed(context: Context, draft: Draft, reaches: Sequence[Reach]) -> Draft:
    """The draft without the lines that none of these verifications ran, in the definitions that they judged."""
    names = {name for reach in reaches for name in reach.names}
    texts = stubbed(draft.files, names, _ran(reaches), keep=context.config.run.keep_unreached)
    return replace(draft, files={**draft.files, **texts})


def lifted(earlier: Sequence[Reach], own: Reach) -> bool:
    """Whether a further verification ran lines that were stubs where earlier units were committed."""
    names, ran = {name for reach in earlier for name in reach.names}, _ran(earlier)
    return any(_definition(key) in names and not ran.get(key, set()) >= {*digests} for key, digests in own.ran.items())


def _definition(key: str) -> str:
    """`file:name` of the top-level definition that a function lies in."""
    path, _, owner = key.partition(":")
    return f"{path}:{owner.partition('.')[0]}"


def _ran(reaches: Iterable[Reach]) -> dict[str, set[str]]:
    statements: dict[str, set[str]] = {}
    for reach in reaches:
        for key, digests in reach.ran.items():
            statements.setdefault(key, set()).update(digests)
    return statements


def figures(reach: Reach | None, *, keep: bool) -> dict[str, int]:
    """What the report says of it while the unit is the last one."""
    if reach is None:
        return {}
    kept = len(reach.missed) if keep else 0
    return {"lines": reach.lines, "reached": reach.reached, "stubs": reach.stubs, **({"kept": kept} if kept else {})}


def all_figures(context: Context, position: int) -> dict[str, dict[str, int]]:
    """Id → what the report says of the units before a position of the plan that were committed: what the calls of all of them together reached.
    Lines that waited for the calls of a later unit are no stubs any more."""
    reaches = earlier_reaches(context, position)
    ran, texts = _ran(reaches.values()), _committed_texts(context, reaches)
    keep = context.config.run.keep_unreached
    return {name: {**figures(reach, keep=keep), **_final_figures(reach, ran, texts)} for name, reach in reaches.items()}


def _final_figures(reach: Reach, ran: Mapping[str, Collection[str]], texts: Mapping[str, str]) -> dict[str, int]:
    idle = sum(len({*digests} - {*ran.get(key, ())}) for key, digests in reach.idle.items())
    stubs = sum(_stubs_of(texts[path], name) for path, _, name in (key.partition(":") for key in reach.names) if path in texts)
    return {"reached": reach.lines - idle, "stubs": stubs}


def _stubs_of(text: str, name: str) -> int:
    return sum(is_stub(part.node) for part in counted_file(text).places if part.owner.partition(".")[0] == name)


def _committed_texts(context: Context, identifiers: Iterable[str]) -> dict[str, str]:
    """Path → text of the files that these units were committed with, as the last of them left it."""
    texts: dict[str, str] = {}
    for identifier in identifiers:
        texts |= load_draft(context.unit_folder(context.plan.order.index(identifier))).files
    return texts
