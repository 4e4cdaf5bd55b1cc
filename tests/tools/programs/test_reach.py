"""Lines that a run reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.programs.judge.compare import Ran, reach
from migrate_agent.tools.programs.judge.options import guarding_switches
from migrate_agent.tools.programs.judge.reach import ranges, reached, unreached

TEXT = '''\
import os


def used(x):
    """A docstring is no line."""
    if x:
        return 1
    y = (
        x
    )
    return y


def unused():
    z = 1
    return z


used(1)
if os.name == "none":
    raise ValueError
'''


def test_lines_that_did_not_run(tmp_path: Path) -> None:
    """Definitions and errors are none."""
    script = tmp_path / "script.py"
    with reached(script) as lines:
        exec(compile(TEXT, str(script), "exec"), {})
    assert ranges(unreached(TEXT, lines)) == "8, 11, 15-16"


OPTIONS = """\
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--save-model", action="store_true")
parser.add_argument("-r", "--resume", dest="again", action="store_true")
args = parser.parse_args()
if args.again:
    load()
if args.save_model and args.lr > 0:
    save()
if args.lr > 1:
    warn()
"""


@pytest.mark.parametrize(
    ("lines", "command", "switches"),
    [
        ([6, 8], ("train.py",), ["--resume", "--save-model"]),
        ([8], ("train.py",), ["--save-model"]),
        ([8], ("train.py", "--save-model"), []),
        # An option with a value has none that could be tried.
        ([10], ("train.py",), []),
    ],
)
def test_options_that_guard_lines(lines: list[int], command: tuple[str, ...], switches: list[str]) -> None:
    """Those without a value, in the conditions around the lines."""
    assert guarding_switches(OPTIONS, lines, command) == switches


@pytest.mark.parametrize(
    ("originals", "candidates", "status", "count"),
    [
        ([[]], [[]], "pass", 0),
        ([[3, 4]], [[]], "unverified", 2),
        # A further run reached them.
        ([[3, 4], [7]], [[3], []], "pass", 0),
        # What the original has no line for was not compared either.
        ([[]], [[9]], "unverified", 1),
    ],
)
def test_every_line_of_both_sides_is_reached(originals: list[list[int]], candidates: list[list[int]], status: str, count: int) -> None:
    """By one run or another."""
    rows = [[Ran({"unrun": lines}, {}) for lines in side] for side in (originals, candidates)]
    verdict = reach(*rows)
    assert (verdict.status, verdict.measured) == (status, count)
