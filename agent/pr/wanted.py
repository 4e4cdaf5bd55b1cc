"""From what was built to requests as they should be: title, text, status, remarks, labels, reviewers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrate_agent.agent.forge.base import Check, Forge
from migrate_agent.agent.pr.body import Links, body
from migrate_agent.agent.pr.build import Built
from migrate_agent.agent.pr.commits import Bench
from migrate_agent.agent.pr.notes import remarks
from migrate_agent.agent.pr.owners import PLACES, owners
from migrate_agent.agent.pr.plan import Wanted
from migrate_agent.agent.pr.sheet import Sheet, folder_of
from migrate_agent.agent.runs.commit_message import WIDTH


@dataclass(frozen=True)
class RequestOptions:
    """What the command line said of the requests. No `reviewers`: those whom CODEOWNERS names."""

    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()


def wanted(
    bench: Bench, forge: Forge, built: Sequence[Built], target: str, tip: str, remote: str, options: RequestOptions
) -> tuple[Wanted, ...]:
    """The requests, bottom first. `tip` is the commit of the target branch, where CODEOWNERS is read."""
    rules = next((text for path in PLACES if (text := bench.read(tip, path)) is not None), "")
    return tuple(_wanted(bench, forge, branch, target, remote, options, rules) for branch in built)


def _wanted(bench: Bench, forge: Forge, built: Built, target: str, remote: str, options: RequestOptions, rules: str) -> Wanted:
    below = "" if built.base == target else f"{{{{request:{built.base}}}}}"
    text = body(
        built.sheets,
        below,
        {sheet.unit: links(forge, built.piece.branch, sheet) for sheet in built.sheets},
        commands(built, remote),
        forge.body_limit,
    )
    total = sum(len(sheet.verdicts) for sheet in built.sheets)
    passed = sum(sheet.passed for sheet in built.sheets)
    people = options.reviewers or owners(rules, [path for sheet in built.sheets for path in (sheet.target, sheet.source)])
    return Wanted(
        branch=built.piece.branch,
        base=built.base,
        commit=built.commit,
        title=title(built.sheets),
        body=text,
        check=Check("success" if passed == total else "failure", f"{passed} of {total} checks passed"),
        notes=remarks(bench, built),
        draft=options.draft,
        labels=options.labels,
        reviewers=people,
    )


def title(sheets: Sequence[Sheet]) -> str:
    """`Migrate model.py:GPT to JAX`, shorter where that is too long."""
    names = (", ".join(sheet.unit for sheet in sheets), ", ".join(sheet.name for sheet in sheets), f"{len(sheets)} units")
    text = "Run {} through torchax" if all(sheet.proposer == "torchax" for sheet in sheets) else "Migrate {} to JAX"
    spelt = [text.format(name) for name in names]
    return next((text for text in spelt if len(text) <= WIDTH), f"{spelt[1][: WIDTH - 1]}…" if len(sheets) == 1 else spelt[-1])


def links(forge: Forge, branch: str, sheet: Sheet) -> Links:
    """Pages of a unit."""
    source = f"{forge.file_url(sheet.base, sheet.source)}#L{sheet.line}"
    return Links(source, forge.file_url(branch, sheet.target), evidence_page(forge, branch, sheet.unit))


def evidence_page(forge: Forge, branch: str, unit: str) -> str:
    """The page of a unit's evidence on its branch."""
    return forge.file_url(branch, f"{folder_of(unit)}/README.md")


def commands(built: Built, remote: str) -> list[str]:
    """What judges the units again."""
    fetch = f"git fetch {remote} {built.piece.branch} && git switch --detach FETCH_HEAD"
    return [f"{fetch} && migrate-agent verify {sheet.unit}" for sheet in built.sheets]
