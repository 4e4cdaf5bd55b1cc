"""Shorter runs of programs that take more than their time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.programs.bounds import Bound, with_bounds
from migrate_agent.tools.programs.migrate import migrate_program
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.programs.shortened import difference, shortened
from migrate_agent.tools.types import Limits
from tests.tools.programs.scripts import TRAIN

PARSER = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("-e", "--epochs", type=int, default=100)
parser.add_argument("--rate", type=float, default=0.1)
args = parser.parse_args()
"""
EPOCH = """
def train(epoch):
    for batch in batches:
        loss = criterion(model(batch))
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        (PARSER + EPOCH + "\nfor epoch in range(args.epochs):\n    train(epoch)\n", (), "--epochs 2"),
        (PARSER + EPOCH + 2 * "\nfor epoch in range(args.epochs):\n    train(epoch)\n", (), "--epochs 2"),
        (PARSER + EPOCH + "\nfor epoch in range(1, args.epochs + 1):\n    train(epoch)\n", (), "--epochs 3"),
        (PARSER + EPOCH + "\nfor epoch in range(args.epochs):\n    train(epoch)\n", ("--epochs", "2"), ""),
        (PARSER + EPOCH + "\nfor epoch in range(args.epochs):\n    train(epoch)\n", ("-e", "9"), "--epochs 2"),
        (PARSER + EPOCH + "\nfor epoch in range(args.epochs):\n    evaluate(epoch)\n", (), ""),
        (
            EPOCH + "\ndef main():\n    rounds = 500\n    for epoch in tqdm(range(rounds)):\n        train(epoch)\n",
            (),
            "rounds = 2 in place of 500",
        ),
        (EPOCH + "\nrounds = 500\nrounds = 400\nfor epoch in range(rounds):\n    train(epoch)\n", (), ""),
        (EPOCH + "\nsize = 64\nfor epoch in range(len(data) // size):\n    train(epoch)\n", (), ""),
        ("last = 600\nwhile True:\n    f().backward()\n    if step > last:\n        break\n", (), "last = 20 in place of 600"),
        (EPOCH + "\nfor epoch in range(int(ends)):\n    train(epoch)\n", (), ""),
        ("for t in range(200):\n    loss = f()\n    loss.backward()\n", (), "`for t in range(20)` in place of `for t in range(200)`"),
        ("for t in range(200):\n    print(t)\nfor t in range(8):\n    f().backward()\n", (), ""),
        ("steps, most = 0, 10\nlast = 1000\nwhile steps < last:\n    f().backward()\n    steps += 1\n", (), "last = 20 in place of 1000"),
    ],
)
def test_loops_that_train_get_fewer_rounds(script: str, options: tuple[str, ...], expected: str) -> None:
    program = Program(("train.py", *options))
    shorter = shortened(program, script)
    assert (difference(shorter, program) if shorter else "") == expected


@pytest.mark.parametrize(
    ("text", "bound", "expected"),
    [
        ("n = 5_00  # rounds\n", Bound("5_00", "2", name="n"), "n = 2  # rounds\n"),
        ("é = 'é'; n = 500\n", Bound("500", "2", name="n"), "é = 'é'; n = 2\n"),
        ("for t in range(200):\n    print(200)\n", Bound("200", "20", head="for t in range(200)"), "for t in range(20):\n    print(200)\n"),
        ("n = 500\nn = 500\n", Bound("500", "2", name="n"), None),
        ("n = 400\n", Bound("500", "2", name="n"), None),
        ("for t in range(200, 200 + 200):\n    pass\n", Bound("200", "20", head="for t in range(200, 200 + 200)"), None),
    ],
)
def test_bounds_are_put_in_and_taken_back(text: str, bound: Bound, expected: str | None) -> None:
    assert with_bounds(text, [bound]) == expected
    if expected is not None:
        assert with_bounds(expected, [bound.reverse]) == text


@pytest.mark.ci
def test_a_program_of_many_rounds_is_judged_by_few(tmp_path: Path, sandbox: ProcessSandbox) -> None:
    """Its rewrite has the script's own number, and a note says what was run."""
    root = tmp_path / "repository"
    root.mkdir()
    script = TRAIN.replace("for step in range(6):", "rounds = 10_000_000\nfor step in range(rounds):").replace(
        "if step % 2 == 0:", "if step % 5 == 0:"
    )
    (root / "train.py").write_text(dedent(script))
    told: list[str] = []
    limits = replace(Limits(), seconds=20)
    migrated = migrate_program(Program(("train.py",)), root, sandbox, tmp_path / "folder", limits, told.append)
    assert migrated.evidence is not None, migrated.reason
    assert migrated.evidence.status == "verified", migrated.evidence.verdicts
    assert "rounds = 10_000_000\n" in migrated.draft.files["train_jax.py"]
    assert migrated.draft.notes[0] == "judged with rounds = 20 in place of 10_000_000: the whole run takes longer than 20 s"
    assert "takes longer than 20 s: once more with rounds = 20 in place of 10_000_000" in told
