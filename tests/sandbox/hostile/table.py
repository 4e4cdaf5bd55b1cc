"""The table of what each backend holds, in docs/sandbox.md: `python -m migrate_agent.tests.sandbox.hostile.table` measures and writes it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from migrate_agent.sandbox import BACKENDS, missing, open_sandbox
from migrate_agent.tests.sandbox.hostile.harness import CANARY, THEMES, Program, escapes, programs

PAGE = Path(__file__).parents[3] / "docs" / "sandbox.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
HELD, NOT_HELD = "held", "**not held**"


def rendered(held: Mapping[tuple[str, str], bool]) -> str:
    """The table as Markdown, from (program's id, backend) → whether it was held."""
    lines = ["| a hostile program tries | " + " | ".join(BACKENDS) + " |", "|---|" + "---|" * len(BACKENDS)]
    for theme, title in THEMES.items():
        lines.append(f"| **{title}** |" + " |" * len(BACKENDS))
        for program in programs():
            if program.theme == theme:
                cells = [HELD if held[program.id, kind] else NOT_HELD for kind in BACKENDS]
                lines.append(f"| {program.text} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def documented() -> dict[tuple[str, str], bool]:
    """What the page says, by the program's text and backend."""
    table = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return {
        (row[0], kind): cell == HELD for row in rows if len(row) == 1 + len(BACKENDS) for kind, cell in zip(BACKENDS, row[1:], strict=True)
    }


def measured(kinds: Sequence[str], wanted: Sequence[Program]) -> dict[tuple[str, str], list[str]]:
    """(program's id, backend) → what it got at."""
    found = {}
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="hostile-") as place:
            sandbox = open_sandbox(kind, folder=Path(place))
            for program in wanted:
                began = time.monotonic()
                found[program.id, kind] = escapes(program, sandbox, Path(place))
                print(f"{time.monotonic() - began:.1f} s", kind, program.id, found[program.id, kind] or HELD, file=sys.stderr, flush=True)
            sandbox.close()
    return found


def main() -> None:
    """Measure every program under every backend, and write the table. Names on the command line narrow the run, and write nothing."""
    os.environ["OPENAI_API_KEY"] = CANARY
    wanted = [program for program in programs() if len(sys.argv) == 1 or {program.name, program.id, program.theme} & set(sys.argv)]
    kinds = [kind for kind in BACKENDS if not missing(kind) and (kind in sys.argv or not set(BACKENDS) & set(sys.argv))]
    if len(sys.argv) > 1:
        wanted = wanted or programs()
    found = measured(kinds, wanted)
    if len(sys.argv) == 1 and len(kinds) == len(BACKENDS):
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + rendered({key: not what for key, what in found.items()}) + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
