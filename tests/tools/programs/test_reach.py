"""Lines that a run reaches."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.programs.judge.compare import Ran, missed_lines, reach
from migrate_agent.tools.programs.judge.options import given_switches, guarding_switches, resuming_options, shortening_options
from migrate_agent.tools.programs.judge.plain_lines import PlainLines
from migrate_agent.tools.programs.judge.reach import ranges, reached, unreached
from migrate_agent.tools.programs.judge.variants import Variant, VariantSearch
from migrate_agent.tools.programs.program import Program

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
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--end", type=int, default=10**6)
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--weights", default="")
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
if args.weights and os.path.exists(args.weights):
    load()
epochs = args.epochs
for epoch in range(epochs):
    if epoch == args.end:
        break
"""


@pytest.mark.parametrize(
    ("lines", "command", "switches"),
    [
        ([10, 12], ("train.py",), ["--resume", "--save-model"]),
        ([12], ("train.py",), ["--save-model"]),
        ([12], ("train.py", "--save-model"), []),
        # An option with a value has none that could be tried.
        ([14], ("train.py",), []),
    ],
)
def test_options_that_guard_lines(lines: list[int], command: tuple[str, ...], switches: list[str]) -> None:
    """Those without a value, in the conditions around the lines."""
    assert guarding_switches(OPTIONS, lines, command) == switches


@pytest.mark.parametrize(
    ("lines", "command", "switches"),
    [
        ([12], ("train.py", "--save-model"), ["--save-model"]),
        ([10], ("train.py", "-r", "--epochs", "2"), ["-r"]),
        ([14], ("train.py", "--save-model"), []),
    ],
)
def test_given_options_that_keep_a_run_from_lines(lines: list[int], command: tuple[str, ...], switches: list[str]) -> None:
    """As the command spells them."""
    assert given_switches(OPTIONS, lines, command) == switches


def test_a_run_without_an_option_reaches_the_other_branch() -> None:
    """It keeps the other options, and runs in a folder of its own."""
    program = Program(("train.py", "--epochs", "2", "--save-model"))

    def run(variant: Variant) -> tuple[Ran, Ran]:
        assert program.arguments(without=variant.without)["command"] == ["train.py", "--epochs", "2"]
        ran = Ran({"unrun": [], "steps": 12, "files": [], "contents": {}}, {})
        return ran, ran

    rows = list(VariantSearch(program, OPTIONS, Ran({"unrun": [12], "steps": 12}, {}), run).variants())
    assert [(one.variant.name, one.variant.folder) for one in rows] == [("without --save-model", "-without--save-model")]


@pytest.mark.parametrize(
    ("lines", "files", "options"),
    [([10], ["a.pt"], ["--resume"]), ([16], ["1.pt", "2.pt"], ["--weights 2.pt", ""]), ([16], [], [""]), ([14], ["a.pt"], [])],
)
def test_options_that_read_what_a_run_left(lines: list[int], files: list[str], options: list[str]) -> None:
    """Switches, paths that are empty else, and none where the script asks whether a file is there."""
    assert resuming_options(OPTIONS, lines, ("train.py",), files) == options


CONFIGURED = """\
init_from, other = "scratch", 3
init_from = "scratch"
exec(open("configurator.py").read())
if init_from == "scratch":
    model = build()
elif init_from == "resume":
    model = build()
    model.load_state_dict(torch.load("last.pt"))
elif init_from == "small":
    model = build(2)
"""
PARSED = """\
parser.add_argument("--start", default="scratch")
if args.start == "best":
    model.load_state_dict(torch.load("best.pt"))
if args.kind == "best":
    model.load_state_dict(torch.load("best.pt"))
"""


@pytest.mark.parametrize(
    ("text", "lines", "options"),
    [
        (CONFIGURED, [7, 8, 10], ["--init_from=resume"]),
        (CONFIGURED, [10], []),
        (CONFIGURED.replace("exec(", "print("), [7, 8], []),
        (PARSED, [3], ["--start=best"]),
        (PARSED, [5], []),
    ],
)
def test_texts_that_let_a_run_load_what_another_left(text: str, lines: list[int], options: list[str]) -> None:
    """Options of a parser, and variables that a configurator sets."""
    assert resuming_options(text, lines, ("train.py",), ["last.pt"]) == options


@pytest.mark.parametrize(
    ("command", "steps", "options"),
    [(("train.py",), 12, ["--end 6", "--epochs 4"]), (("train.py", "--epochs=1"), 12, ["--end 6"]), (("train.py", "--end", "4"), 1, [])],
)
def test_options_that_end_a_run_earlier(command: tuple[str, ...], steps: int, options: list[str]) -> None:
    """Bounds of loops, those first that the run does not come to."""
    assert shortening_options(OPTIONS, command, steps) == options


def test_runs_that_go_on_from_a_file() -> None:
    """Where a run that was ended early leaves nothing, one that its own options end earlier comes first."""
    runs = {"with --resume": [10], "with --end 6": [10], "with --resume, after one with --end 6": []}

    def run(variant: Variant) -> tuple[Ran | None, Ran | None]:
        if variant.name not in runs:
            return None, None
        ended = variant.steps or (6 if variant.options == "--end 6" else 12)
        files = ["last.pt"] if variant.options else []
        ran = Ran({"unrun": runs[variant.name], "steps": ended, "files": files, "contents": files}, {})
        return ran, ran

    plain = Ran({"unrun": [10], "steps": 12}, {})
    search = VariantSearch(Program(("train.py",)), OPTIONS, plain, run)
    assert [one.variant.name for one in search.variants()] == ["with --end 6", "with --resume, after one with --end 6"]


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
    rows = [[Ran({"unrun": lines, "plain": []}, {}) for lines in side] for side in (originals, candidates)]
    verdict = reach(missed_lines(*rows))
    assert (verdict.status, verdict.measured) == (status, count)


STOPPING = """\
import numpy as np

patience, counter, best, weights = 3, 0, None, np.zeros(2)


class Data:
    def __len__(self):
        return self.size

    def __iter__(self):
        return iter(self.size)


for score in (1.0, 2.0):
    if best is None or score > best:
        best = score
    else:
        counter += 1
        weights += 1
        weights = best
    if counter >= patience:
        print(f"stopped at {score:.2f}")
        break
    if weights.sum() > 1:
        counter = 0
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        # An array that changes or is read elsewhere, calls, and what stands under a condition on an array are compared by runs alone.
        ("", "", "11, 19-20, 25"),
        ("counter += 1", "counter += 2", "11, 18-20, 25"),
        # Other values in a condition, another condition, and another line that reads what a line changes.
        ("weights = 3", "weights = 4", "11, 19-20, 22-23, 25"),
        ("(1.0, 2.0)", "(1.0, 2.001)", "11, 18-20, 22, 25"),
        ("counter >= patience", "counter > patience", "11, 18-20, 22-23, 25"),
        ("weights.sum() > 1", "weights.sum() > counter", "11, 18-20, 25"),
        ("self.size", "self.length", "8, 11, 19-20, 25"),
    ],
)
def test_plain_lines_need_no_run_where_both_sides_have_them(tmp_path: Path, old: str, new: str, lines: str) -> None:
    """The same words in the same place, on the same plain values, and read by the same lines."""
    rows = []
    for number, text in enumerate((STOPPING, STOPPING.replace(old, new, 1) if old else STOPPING)):
        script, plain = tmp_path / f"script{number}.py", PlainLines(text)
        with reached(script, plain.look) as ran:
            exec(compile(text, str(script), "exec"), {"__name__": "__main__"})
        unrun = unreached(text, ran)
        rows.append([Ran({"unrun": unrun, "plain": plain.rows(unrun)}, {})])
    detail = reach(missed_lines(*rows)).detail
    assert detail.partition("whether they are right: ")[2].partition(";")[0] == lines


CLOSING = """\
import io

stream, seen = io.StringIO(), 0
for count in range(3):
    seen += count
    if count == 5:
        stream.close()
        stream.close(seen)
        stream.reopen()
"""


def test_what_closes_something_needs_no_run(tmp_path: Path) -> None:
    """In the same words, and without arguments."""
    script, plain = tmp_path / "script.py", PlainLines(CLOSING)
    with reached(script, plain.look) as ran:
        exec(compile(CLOSING, str(script), "exec"), {"__name__": "__main__"})
    unrun = unreached(CLOSING, ran)
    rows = [[Ran({"unrun": unrun, "plain": plain.rows(unrun)}, {})] for _ in range(2)]
    assert "8-9" in reach(missed_lines(*rows)).detail
    assert "7" not in reach(missed_lines(*rows)).detail.partition("whether they are right: ")[2].partition(";")[0]


REMOVING = """\
import os, shutil

for number, name in enumerate(("1.pt", "2.pt")):
    if number > 5:
        os.remove(name)
        shutil.copyfile(name, os.path.join("all", name))
        os.makedirs(name, exist_ok=True)
"""
HELPERS = "from migrate_agent.tools.programs.vendored.checkpoints import copy_checkpoint, remove_checkpoint"
OWN = "copy_checkpoint = print; exec('def remove_checkpoint(path): pass')"


@pytest.mark.parametrize(
    ("imports", "removing", "copying", "lines"),
    [
        (HELPERS, "remove_checkpoint(name)", "copy_checkpoint(name, os.path.join('all', name))", ""),
        ("import os, shutil", "os.remove(name)", "shutil.copyfile(name, os.path.join('all', name))", ""),
        (HELPERS, "remove_checkpoint('all')", "copy_checkpoint(name, os.path.join('best', name))", "5-7"),
        (HELPERS, "copy_checkpoint(name, name)", "remove_checkpoint(name)", "5-7"),
        # What has a helper's name and is none.
        (OWN, "remove_checkpoint(name)", "copy_checkpoint(name, os.path.join('all', name))", "5-6"),
    ],
)
def test_what_removes_and_copies_files_needs_no_run(tmp_path: Path, imports: str, removing: str, copying: str, lines: str) -> None:
    """In the same words and the same order, but for the helpers that do it to checkpoints."""
    other = REMOVING.replace("import os, shutil", imports).replace("os.remove(name)", removing)
    other = other.replace('shutil.copyfile(name, os.path.join("all", name))', copying)
    rows = []
    for number, text in enumerate((REMOVING, other)):
        script, plain = tmp_path / f"script{number}.py", PlainLines(text)
        with reached(script, plain.look) as ran:
            exec(compile(text, str(script), "exec"), {"__name__": "__main__"})
        unrun = unreached(text, ran)
        rows.append([Ran({"unrun": unrun, "plain": plain.rows(unrun)}, {})])
    assert reach(missed_lines(*rows)).detail.partition("whether they are right: ")[2].partition(";")[0] == lines
