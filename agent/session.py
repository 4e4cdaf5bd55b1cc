"""The review at a terminal: source and rewrite side by side, the verdicts, and the user's word."""

from __future__ import annotations

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.prompt import Prompt
from rich.syntax import Syntax
from rich.text import Text

from migrate_agent.agent.context import Context
from migrate_agent.agent.snippet import class_text
from migrate_agent.agent.state import RunState
from migrate_agent.agent.tables import verdict_table

CHOICES = {"a": "accept", "s": "skip", "q": "quit"}
SIDE_BY_SIDE = 140
"""Columns from which two panes of code can be read."""


def ask(context: Context, state: RunState) -> str:
    """Show the unit at work and ask; gives `accept`, `skip` or `quit`. Where there is no terminal, what is verified is accepted."""
    console = context.progress.console
    if not console.is_terminal:
        return "accept"
    with context.progress.paused():
        show(console, context, state)
        try:
            answer = Prompt.ask("[bold]a[/]ccept, [bold]s[/]kip, [bold]q[/]uit", choices=list(CHOICES), default="a", console=console)
        except EOFError:
            answer = "q"
    return CHOICES[answer]


def show(console: Console, context: Context, state: RunState) -> None:
    """Source and rewrite, side by side where the terminal is wide enough, and the verdicts."""
    unit, draft, evidence = context.unit(state), context.draft(state), context.evidence(state)
    source = class_text((context.original / unit.source).read_text(encoding="utf-8"), unit.name)
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
    for note in draft.notes:
        console.print(f"note: {note}", markup=False)


def _pane(title: str, text: str, width: int) -> RenderableType:
    return Panel(Syntax(text, "python", word_wrap=True, background_color="default"), title=title, width=width)
