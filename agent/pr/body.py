"""The text of a request: the verdict first, the rest folded, parts left out from the last one where the forge's limit is short."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from migrate_agent.agent.config.secrets import redacted
from migrate_agent.agent.pr.sheet import Sheet
from migrate_agent.agent.runs.commit_message import number
from migrate_agent.prompts import code
from migrate_agent.tools.types import Verdict

ROOM = 2_000
"""Characters kept free for what people write around our text, and for notes of what was asked."""
_PART = re.compile(r"^<!-- part (\w+) (\d+) -->\n", re.MULTILINE)


class Links(NamedTuple):
    """Pages on the forge about one unit."""

    source: str
    target: str
    evidence: str


class Row(NamedTuple):
    """A stage of one unit in the table that is seen first. `check` is the one that came closest to its limit."""

    unit: str
    stage: str
    passed: int
    total: int
    check: str
    measured: str
    limit: str


class Compiled(NamedTuple):
    """A program on a TPU topology, as the table has it."""

    topology: str
    program: str
    peak: str
    hbm: str
    flops: str
    moved: str


def body(sheets: Sequence[Sheet], stands_on: str, links: Mapping[str, Links], commands: Sequence[str], limit: int) -> str:
    """The text, at most `limit` characters. `stands_on` is the request below, "" where there is none."""
    text = (
        environment()
        .get_template("body.md")
        .render(
            sheets=sheets,
            many=len(sheets) > 1,
            passed=sum(sheet.passed for sheet in sheets),
            total=sum(len(sheet.verdicts) for sheet in sheets),
            how=" ".join(dict.fromkeys(origin_line(sheet) for sheet in sheets)),
            stands_on=stands_on,
            summary=[row for sheet in sheets for row in stages(sheet)],
            links=links,
            commands=commands,
        )
    )
    return redacted(cut_to(text, limit - ROOM))


def cut_to(text: str, limit: int) -> str:
    """The parts that have room: those of the highest rank go first, and each that goes is named."""
    pieces = _PART.split(text)
    parts = [("head", 0, pieces[0]), *((pieces[i], int(pieces[i + 1]), pieces[i + 2]) for i in range(1, len(pieces), 3))]
    parts_left = [(name, rank, re.sub(r"\n{3,}", "\n\n", part.strip())) for name, rank, part in parts if part.strip()]
    dropped: list[str] = []
    while (size := sum(len(part) + 2 for *_, part in parts_left) + 200) > limit and any(rank for _, rank, _ in parts_left):
        last = max(parts_left, key=lambda item: item[1])
        parts_left.remove(last)
        dropped.append(last[0])
    whole = "\n\n".join(part for *_, part in parts_left)
    if dropped:
        whole += f"\n\nLeft out, since the forge takes no longer text: {', '.join(reversed(dropped))}. All of it lies beside the evidence."
    return whole if size <= limit else whole[: limit - 2] + "\n…"


def stages(sheet: Sheet) -> list[Row]:
    """One row a stage, in the order of the verdicts' first."""
    order = list(dict.fromkeys(verdict.stage for verdict in sheet.verdicts))
    by = sorted(sheet.verdicts, key=lambda verdict: order.index(verdict.stage))
    return [_row(sheet, stage, tuple(verdicts)) for stage, verdicts in groupby(by, key=lambda verdict: verdict.stage)]


def _row(sheet: Sheet, stage: str, verdicts: Sequence[Verdict]) -> Row:
    passed = sum(verdict.status == "pass" for verdict in verdicts)
    judged = [verdict for verdict in verdicts if closeness(verdict) is not None]
    first = max(judged, key=lambda verdict: closeness(verdict) or 0.0, default=None)
    figures = (first.check, number(first.measured), number(first.limit)) if first else ("", "", "")
    return Row(sheet.unit, stage, passed, len(verdicts), *figures)


def closeness(verdict: Verdict) -> float | None:
    """How much of its limit a passed verdict uses, 0 to 1; a limit from below (a probability) counts the other way. `None` without numbers."""
    if verdict.measured is None or not verdict.limit or verdict.measured < 0:
        return None
    low, high = sorted((verdict.measured, verdict.limit))
    return low / high


def origin_line(sheet: Sheet) -> str:
    """Who wrote it, in one sentence."""
    match sheet.proposer:
        case "rules":
            return "Written by deterministic rules alone; no model took part."
        case "torchax":
            return "Not rewritten: the original runs through torchax, and it, torch and torchax are needed at run time."
        case "llm":
            tries = f" in {sheet.attempts} attempts" if sheet.attempts > 1 else ""
            return f"Written by rules and the model {sheet.model or '(unnamed)'}{tries}; judged by the same fixed verifier."
        case _:
            return "Edited by a person; judged by the same fixed verifier."


@cache
def environment(html: bool = False) -> Environment:
    """Strict templates of this folder."""
    loader = FileSystemLoader(Path(__file__).parent)
    templates = Environment(loader=loader, undefined=StrictUndefined, autoescape=html, trim_blocks=True, lstrip_blocks=True)
    templates.filters |= {"code": code, "figure": number, "line": _line, "cell": _cell, "tpu": _tpu}
    return templates


def _line(text: str) -> str:
    """Text of others inside a table or list: one line, with what Markdown or the forge would act on taken apart."""
    plain = " ".join(str(text).split())
    return re.sub(r"([\\`*_\[\]<>|#~])|(?<!\w)@(?=\w)", lambda match: f"\\{match[0]}" if match[1] else "@\u200b", plain)


def _cell(text: str) -> str:
    """Code inside a table; nothing in it can end the code or the cell."""
    plain = " ".join(str(text).split())
    if not plain:
        return ""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", plain)), default=0) + 1)
    room = " " if "`" in plain else ""
    return f"{fence}{room}{plain.replace('|', chr(92) + '|')}{room}{fence}"


def _tpu(sheet: Sheet) -> list[Compiled]:
    """The figures `tpu/TOPOLOGY/PROGRAM/QUANTITY` of a unit, one row a program."""
    names = [tuple(name.split("/")) for name in sheet.figures if name.startswith("tpu/")]
    programs = dict.fromkeys(parts[1:3] for parts in names if len(parts) == 4)
    return [_compiled(sheet.figures, *program) for program in programs]


def _compiled(figures: Mapping[str, float], topology: str, program: str) -> Compiled:
    peak, hbm, flops, moved = (
        figures.get(f"tpu/{topology}/{program}/{name}", 0.0) for name in ("peak_bytes", "hbm_bytes", "flops", "moved_bytes")
    )
    return Compiled(topology, program, f"{peak / 2**20:.4g} MiB", f"{hbm / 2**30:.4g} GiB", f"{flops:.3g}", f"{moved:.3g}")
