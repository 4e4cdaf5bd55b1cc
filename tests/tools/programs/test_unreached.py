"""Errors in the regions of a script that no run came to."""

from __future__ import annotations

import pytest

from migrate_agent.tools.programs.judge.reach import unreached
from migrate_agent.tools.programs.rewrite.unreached import MESSAGE, as_reached, block_around, with_errors

SCRIPT = """\
if resume:
    state = load(path)
    start = state["epoch"]
elif fresh:
    start = make()
else:
    start = 0
for epoch in range(start, 3):
    if stopped:
        print("early", epoch)
        break
    train(
        epoch)
"""
RAN = {1, 4, 7, 8, 9, 12, 13}


def test_errors_take_the_place_of_what_did_not_run() -> None:
    """On as many lines as before; what only prints or leaves a loop is its own rewrite."""
    missed = unreached(SCRIPT, RAN)
    result = as_reached(SCRIPT, SCRIPT, (missed, missed), keep=False)
    assert result is not None
    text, regions = result
    assert [region.condition for region in regions] == ["resume", "fresh"]
    assert text.splitlines()[1:5] == [
        "    raise NotImplementedError('not migrated, since no run came here: resume')",
        "",
        "elif fresh:",
        "    raise NotImplementedError('not migrated, since no run came here: fresh')",
    ]
    assert "print(" in text and "break" in text
    kept = as_reached(SCRIPT, SCRIPT, (missed, missed), keep=True)
    assert kept is not None and "    # no run reaches this: it was not verified\n    state" in kept[0]


def test_an_else_stands_for_an_elif_that_was_never_asked() -> None:
    """Since the branch before it was taken each time."""
    missed = unreached(SCRIPT, RAN - {1, 4, 7} | {1, 2, 3})
    result = as_reached(SCRIPT, SCRIPT, (missed, missed), keep=False)
    assert result is not None
    assert result[0].splitlines()[3:7] == [
        "else:",
        "    raise NotImplementedError('not migrated, since no run came here: not (resume)')",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("original", "rewrite"),
    [
        # The rewrite may have left something out.
        (SCRIPT, SCRIPT.replace("elif fresh:\n    start = make()\n", "")),
        # An error would make another kind of function of it.
        ("def f():\n    if a:\n        yield g()\n", "def f():\n    if a:\n        yield g()\n"),
    ],
)
def test_what_stays_unverified(original: str, rewrite: str) -> None:
    """Where an error says too little or too much."""
    lines = RAN if original is SCRIPT else {2}
    ours = {1, 5, 6, 7, 10, 11} if original is SCRIPT else lines
    assert as_reached(original, rewrite, (unreached(original, lines), unreached(rewrite, ours)), keep=False) is None


def test_the_device_has_no_counterpart() -> None:
    """So a region of the original that moves values there need not be in the rewrite."""
    original = "if cuda:\n    model = model.cuda()\n    x, y = x.cuda(), y.cuda()\n    torch.backends.cudnn.benchmark = flag()\n"
    missed = unreached(original, {1})
    assert as_reached(original.replace(" = flag()", "()"), "pass\n", (missed, []), keep=False) is not None
    other = "if cuda:\n    x, y = x.cuda(), y + 1\n"
    assert as_reached(other, "pass\n", (unreached(other, {1}), []), keep=False) is None


BRANCHES = "if fast:\n    a.zero()\nloss()\nif fast:\n    a.step()\nif slow:\n    b.step()\n"
AGENTS = "class A:\n    def act(self):\n        go()\n    def fit(self):\n        step()\nclass B:\n    def fit(self):\n        step()\nA\n"
STUBS = (
    "class A:\n    def act(self):\n        go()\n    def fit(self):\n        raise NotImplementedError('not exercised')\n"
    "class B:\n    def fit(self):\n        {later}\nA\n"
)
LAYERS = "class N:\n    def __init__(self):\n        make()\n    def forward(self, x):\n        return x\n{}N\n"
NO_LAYERS = 'class N:\n    """Layers."""\n    def __init__(self):\n        raise NotImplementedError("N is not verified")\n{}N\n'
OTHER = "class M:\n    def __init__(self):\n        make()\n"
EXPORT = "def export(path):\n    save(path)\nexport\n"


@pytest.mark.parametrize(
    ("original", "ran", "rewrite", "covered"),
    [
        # One error in front stands for both branches.
        (BRANCHES.replace("slow", "fast"), {1, 3, 4, 6}, f"if fast:\n    raise NotImplementedError('{MESSAGE}: fast')\nloss()\n", True),
        (BRANCHES, {1, 3, 4, 6}, f"if fast:\n    raise NotImplementedError('{MESSAGE}: fast')\nloss()\n", False),
        (EXPORT, {1, 3}, "export = NotMigrated('no rule')\n", True),
        (EXPORT, {1, 3}, "other = NotMigrated('no rule')\n", False),
        # A class that cannot be constructed is an error for all of its methods, and for no others.
        (LAYERS.format(""), {1, 2, 4, 6}, NO_LAYERS.format(""), True),
        (LAYERS.format(OTHER), {1, 2, 4, 6, 7, 9}, NO_LAYERS.format(OTHER.replace("make()", "pass")), False),
        (LAYERS.format(""), {1, 2, 4, 6}, NO_LAYERS.format("").replace("class N", "class M"), False),
        # A method that is an error stands for one of its name, and for no second one.
        (AGENTS, {1, 2, 3, 4, 6, 7, 9}, STUBS.format(later="raise NotImplementedError('not exercised')"), True),
        (AGENTS, {1, 2, 3, 4, 6, 7, 9}, STUBS.format(later="pass"), False),
    ],
)
def test_an_error_in_front_stands_for_what_it_keeps_from_running(original: str, ran: set[int], rewrite: str, covered: bool) -> None:
    assert (as_reached(original, rewrite, (unreached(original, ran), []), keep=False) is not None) is covered


def test_the_innermost_block() -> None:
    """Of the line of a hole."""
    block = block_around(SCRIPT, 11)
    assert block is not None and (block.lines, block.condition) == ((10, 11), "stopped")
    assert block_around(SCRIPT, 1) is None
    assert with_errors(SCRIPT, [block]).splitlines()[9:11] == [
        "        raise NotImplementedError('not migrated, since no run came here: stopped')",
        "",
    ]
