"""The review at a terminal: source and rewrite side by side, the verdicts, and the user's word.

Everything is lines of text and keys followed by Enter: it works over ssh, in 80 columns, without colour and without a mouse.
"""

from __future__ import annotations

import difflib
import os
import shlex
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from migrate_agent.agent.config.json_files import write_text
from migrate_agent.agent.loop.context import Context
from migrate_agent.agent.loop.nodes.review import class_now, last_accepted
from migrate_agent.agent.loop.unit_work import UnitWork
from migrate_agent.agent.model.splice import Refused, check_definition
from migrate_agent.agent.runs.class_text import class_text
from migrate_agent.agent.runs.state import RunState
from migrate_agent.agent.runs.tables import verdict_table

SIDE_BY_SIDE = 140
"""Columns from which two panes of code can be read."""

Answer = str | Mapping[str, str]
"""`accept`, `skip`, `undo`, `quit`, or a mapping with `action` and `text` (`nodes.review.ACTIONS`)."""


class Key(NamedTuple):
    """A key, what it is called, and what it does."""

    key: str
    name: str
    help: str


KEYS = (
    Key("a", "accept", "commit the rewrite"),
    Key("e", "edit", "change the rewrite in $EDITOR; it is verified again"),
    Key("r", "retry", "let the model try again, with a hint"),
    Key("?", "ask", "ask the model a question about the unit"),
    Key("d", "diff", "show what changed, line by line"),
    Key("v", "view", "show source, rewrite and verdicts again"),
    Key("s", "skip", "leave the unit out"),
    Key("u", "undo", "take back the last accepted unit"),
    Key("q", "quit", "stop here; `migrate-agent resume` goes on"),
    Key("h", "help", "what the keys do"),
)


def ask(context: Context, state: RunState) -> Answer:
    """Show the unit at work and ask until there is an answer. Where there is no terminal, what is verified is accepted."""
    console = context.progress.console
    passed = _passed(state)
    if not console.is_terminal:
        return "accept" if passed else "skip"
    with context.progress.paused():
        work = context.load(state)
        show(console, context, state, work)
        keys = offered_keys(context, state)
        try:
            while True:
                answer = _answer(_choose(console, keys), console, context, state, work, keys)
                if answer is not None:
                    return answer
        except EOFError:
            return "quit"


def offered_keys(context: Context, state: RunState) -> tuple[Key, ...]:
    """The keys that make sense now."""
    without = {
        "accept": not _passed(state),
        "retry": context.model is None,
        "ask": context.model is None,
        "undo": last_accepted(context, state) is None,
    }
    return tuple(key for key in KEYS if not without.get(key.name, False))


def show(console: Console, context: Context, state: RunState, work: UnitWork) -> None:
    """Source and rewrite, side by side where the terminal is wide enough, the verdicts, the holes and the notes."""
    unit, draft, evidence = context.unit(state), work.drafted(), work.evidence
    source = class_text((context.original / unit.source).read_text(encoding="utf-8-sig"), unit.name)
    rewritten = class_text(draft.files[unit.target], unit.name)
    wide = console.width >= SIDE_BY_SIDE
    width = console.width // 2 - 1 if wide else console.width
    panes = [_pane(title, text, width) for title, text in ((unit.source, source), (unit.target, rewritten))]
    console.rule(Text(f"{state['position'] + 1} of {len(context.plan.order)}: {unit.id}"))
    console.print(Columns(panes, padding=(0, 1)) if wide else panes[0])
    if not wide:
        console.print(panes[1])
    if evidence:
        console.print(verdict_table(evidence.verdicts))
    for hole in draft.holes:
        console.print(f"hole: {hole.source}:{hole.span.line}: {hole.reason}", markup=False)
    for note in draft.notes:
        console.print(f"note: {note}", markup=False)
    if state.get("outcome") == "asked" and work.answer:
        console.print(Panel(Markdown(work.answer), title="the model's answer", width=min(console.width, 100)))
    if not _passed(state):
        console.print("not verified: it can be edited, tried again or left", markup=False)


def diff(console: Console, context: Context, state: RunState, work: UnitWork) -> None:
    """The class before and after, as a unified diff."""
    unit = context.unit(state)
    before = class_text((context.original / unit.source).read_text(encoding="utf-8-sig"), unit.name).splitlines()
    after = class_text(work.drafted().files[unit.target], unit.name).splitlines()
    lines = difflib.unified_diff(before, after, unit.source, unit.target, lineterm="", n=2)
    console.print(Syntax("\n".join(lines), "diff", word_wrap=True, background_color="default"))


def _passed(state: RunState) -> bool:
    outcome = state.get("outcome", "")
    return (state.get("standing", "") if outcome == "asked" else outcome) == "passed"


def _choose(console: Console, keys: tuple[Key, ...]) -> Key:
    """The key that the user chose; Enter takes the first that is offered."""
    console.print(", ".join(f"{key.key} {key.name}" for key in keys), markup=False)
    while True:
        text = console.input(Text("key > ")).strip().lower()
        matches = [key for key in keys if text in (key.key, key.name)]
        if matches or not text:
            return matches[0] if matches else next(key for key in keys if key.name in ("accept", "help"))
        console.print(f"{text!r} is none of the keys: type one of {' '.join(key.key for key in keys)}, and Enter", markup=False)


def _answer(key: Key, console: Console, context: Context, state: RunState, work: UnitWork, keys: tuple[Key, ...]) -> Answer | None:
    """What a key answers; `None` where it only shows something."""
    match key.name:
        case "accept" | "skip" | "undo" | "quit":
            return key.name
        case "edit":
            return _edit(console, context, state, work)
        case "retry":
            return _ask_for_text(console, "hint for the model (empty: none) > ", "retry")
        case "ask":
            return _ask_for_text(console, "question > ", "ask")
        case "diff":
            diff(console, context, state, work)
        case "view":
            show(console, context, state, work)
        case _:
            for offer in keys:
                console.print(f"  {offer.key}  {offer.name:7} {offer.help}", markup=False)
    return None


def _ask_for_text(console: Console, prompt: str, action: str) -> Answer | None:
    text = console.input(Text(prompt)).strip()
    return {"action": action, "text": text} if text or action == "retry" else None


def _edit(console: Console, context: Context, state: RunState, work: UnitWork) -> Answer | None:
    """The class as the user's editor left it; `None` where it is unchanged or of no use, with the reason."""
    file = work.folder / "edit.py"
    before = class_now(context, state, work)
    write_text(file, before)
    command = [*shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"), str(file)]
    try:
        status = subprocess.run(command, check=False).returncode
    except OSError as error:
        console.print(f"{command[0]} cannot be run: {error.strerror}; set EDITOR", markup=False)
        return None
    text = file.read_text(encoding="utf-8")
    if status or text == before:
        console.print(
            "nothing was changed" if not status else f"{command[0]} left with status {status}: nothing is taken over", markup=False
        )
        return None
    try:
        check_definition(text, context.unit(state).name.partition(".")[0])
    except Refused as error:
        console.print(f"the text cannot be used: {error}", markup=False)
        return None
    return {"action": "edit", "text": text}


def _pane(title: str, text: str, width: int) -> RenderableType:
    return Panel(Syntax(text, "python", word_wrap=True, background_color="default"), title=title, width=width)
