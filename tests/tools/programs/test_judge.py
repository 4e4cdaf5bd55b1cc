"""The judge on right and wrong programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.programs.judge.judge import Judge
from migrate_agent.tools.programs.program import Program
from migrate_agent.tools.types import Limits
from tests.tools.programs.scripts import TRAIN, rewritten

WRONG = (
    ("the rate", "1e-2", "2e-2"),
    ("eps inside the root", "eps=1e-8)", "eps=1e-8, eps_root=1e-12)"),
    ("a step left out", "    if step % 2 == 0:", "    if step == 2:\n        continue\n    if step % 2 == 0:"),
    ("the wrong rows", "inputs[index], targets[index]", "inputs[index], targets[index - 1]"),
    ("logged one step late", "step % 2 == 0", "step % 2 == 1"),
)


@pytest.mark.slow
def test_right_and_wrong_programs(tmp_path: Path, sandbox: ProcessSandbox) -> None:
    """The rewrite is verified; with any one place changed it is not."""
    files = rewritten(TRAIN, tmp_path).files
    program = Program(("train.py",))
    judge = Judge(program, tmp_path / "repository", sandbox, tmp_path / "runs", Limits(seconds=120), lambda text: None)
    for name, old, new in (("nothing", "", ""), *WRONG):
        folder = tmp_path / "candidate"
        folder.mkdir(exist_ok=True)
        assert old in files["train_jax.py"]
        for path, text in files.items():
            (folder / path).write_text(text.replace(old, new, 1) if path == "train_jax.py" and old else text)
        evidence = judge.judge(folder, "train_jax.py")
        assert (evidence.status == "verified") == (name == "nothing"), (name, evidence.verdicts)
