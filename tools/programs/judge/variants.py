"""Further runs of a program, and the search for those that reach more of its lines than the run that was asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from migrate_agent.tools.programs.judge.compare import Ran
from migrate_agent.tools.programs.judge.options import given_switches, guarding_switches, resuming_options, shortening_options
from migrate_agent.tools.programs.program import Program

MOST_TRIES = 4
"""How many options of a kind are tried."""


@dataclass(frozen=True)
class Variant:
    """A further run of the program, in float64: with further `options` or `without` one of its own, in a folder with what the run `after` left, ended
    after `steps`, or both sides with gradients multiplied by `scale`."""

    options: str = ""
    after: Variant | None = None
    steps: int = 0
    scale: float = 1.0
    without: str = ""

    @property
    def name(self) -> str:
        """As people read it."""
        own = f"with {self.options}" if self.options else f"to step {self.steps}" if self.steps else "again"
        own = f"without {self.without}" if self.without else own
        before = (
            "one that was ended early" if self.after is not None and self.after.steps else f"one {self.after.name}" if self.after else ""
        )
        return f"{own}, after {before}" if before else own

    @property
    def folder(self) -> str:
        """What its runs' folders are called after."""
        own = "".join(character if character.isalnum() or character in "-_" else "_" for character in self.options)
        own = f"{own}-without{self.without}" if self.without else own
        ended, scaled = "-ended" if self.steps else "", f"-scaled{self.scale:.3g}" if self.scale != 1.0 else ""
        return f"{own}{ended}{scaled}{f'-after{self.after.folder}' if self.after is not None else ''}"


PLAIN = Variant()


@dataclass(frozen=True)
class Further:
    """A variant with its run of the original, and the same with weights moved by one rounding."""

    variant: Variant
    original: Ran
    moved: Ran


class VariantSearch:
    """Looks for runs of the original that reach lines which its plain run does not.

    `text` is the script, `plain` its plain run, and `run` gives two runs of a variant, the second with weights moved, or `None` for one that does not run.
    """

    def __init__(self, program: Program, text: str, plain: Ran, run: Callable[[Variant], tuple[Ran | None, Ran | None]]) -> None:
        self.program, self.text, self.plain, self._run = program, text, plain, run
        self.lines = set(plain.trace["unrun"])

    def variants(self) -> Iterator[Further]:
        """Runs with options that guard lines and without those that guard other lines, then those that go on from files that an earlier run left."""
        for switch in guarding_switches(self.text, sorted(self.lines), self.program.command)[:MOST_TRIES]:
            yield from self._useful(Variant(switch))
        for switch in given_switches(self.text, sorted(self.lines), self.program.command)[:MOST_TRIES]:
            yield from self._useful(Variant(without=switch))
        for before in self._earlier():
            if not resuming_options(self.text, sorted(self.lines), self.program.command, ["file"]):
                return
            first, moved = self._run(before)
            if first is None or moved is None:
                continue
            if 0 < first.trace["steps"] < self.plain.trace["steps"] and first.trace["files"]:
                yield from self._resumed(Further(before, first, moved))

    def _earlier(self) -> Iterator[Variant]:
        """Runs that leave something to do: one that is ended after three quarters of its steps, as if it were killed, and shorter ones."""
        steps = int(self.plain.trace["steps"])
        yield Variant(steps=max(1, steps * 3 // 4))
        for options in shortening_options(self.text, self.program.command, steps)[:MOST_TRIES]:
            yield Variant(options)

    def _resumed(self, before: Further) -> Iterator[Further]:
        files = [os.path.relpath(file, self.program.folder or ".") for file in sorted(before.original.trace["contents"])]
        for options in resuming_options(self.text, sorted(self.lines), self.program.command, files)[:MOST_TRIES]:
            rows = list(self._useful(Variant(options, before.variant)))
            if rows and before.variant.options:
                yield before
            yield from rows

    def _useful(self, variant: Variant) -> Iterator[Further]:
        """The variant, if it trains and reaches some of the lines that no run before it does."""
        ran, moved = self._run(variant) if self.lines else (None, None)
        if ran is None or moved is None or not ran.trace["steps"] or self.lines <= set(ran.trace["unrun"]):
            return
        self.lines &= set(ran.trace["unrun"])
        yield Further(variant, ran, moved)
