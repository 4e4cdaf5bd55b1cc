"""What the user sees while a run goes on: one line a unit and stage on stderr, with a spinner where that is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.status import Status as Spinner
from rich.text import Text

from migrate_agent.agent.config.secrets import redacted
from migrate_agent.tools.types import UnitReport

COLOURS = {"verified": "green", "failed": "red", "unverified": "yellow", "skipped": "dim", "pass": "green", "fail": "red"}


def stderr() -> Console:
    """The console for progress and errors; long lines are not broken where nobody looks at a terminal."""
    console = Console(stderr=True, highlight=False, emoji=False)
    return console if console.is_terminal else Console(stderr=True, highlight=False, emoji=False, soft_wrap=True, no_color=True)


def stdout() -> Console:
    """The console for results. Into a file or pipe, tables get the width that they need."""
    console = Console(highlight=False, emoji=False)
    return console if console.is_terminal else Console(highlight=False, emoji=False, no_color=True, width=240)


def coloured(status: str) -> str:
    """A status as rich markup."""
    return f"[{COLOURS.get(status, 'default')}]{status}[/]"


@dataclass
class Progress:
    """Lines on a console. `total` is known once there is a plan."""

    console: Console = field(default_factory=stderr)
    total: int = 0
    _spinner: Spinner | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the present stage on a line that moves, where there is a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with self.console.status("starting") as self._spinner:
            try:
                yield
            finally:
                self._spinner = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Keep the moving line still, for a question."""
        spinner = self._spinner
        if spinner is not None:
            spinner.stop()
        yield
        if spinner is not None:
            spinner.start()

    def stage(self, subject: str, text: str) -> None:
        """What is being done now, and for what."""
        line = Text(redacted(f"{subject}: {text}" if subject else text))
        if self._spinner is not None:
            self._spinner.update(line)
        elif not self.console.is_terminal:
            self.console.print(Text("  ") + line)

    def note(self, text: str) -> None:
        """One line that stays."""
        self.console.print(escape(redacted(text)))

    def warn(self, text: str) -> None:
        """One line that stays and should be read."""
        self.console.print(f"[yellow]warning:[/] {escape(redacted(text))}")

    def unit(self, number: int, report: UnitReport) -> None:
        """The end of a unit."""
        passed = sum(verdict.status == "pass" for verdict in report.verdicts)
        checks = f"{passed}/{len(report.verdicts)} checks, {report.seconds:.1f} s" if report.verdicts else f"{report.seconds:.1f} s"
        reason = f"  {report.reason}" if report.reason else ""
        name = escape(f"{report.source}:{report.name}")
        self.console.print(f"[{number}/{self.total}] {name}  {coloured(report.status)}  {checks}{escape(redacted(reason))}")
