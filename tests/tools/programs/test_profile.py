"""What a file's syntax says of a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.agent.loop.program_tables import note_program
from migrate_agent.tools.programs.profile import profile, refusals
from migrate_agent.tools.programs.program import NoProgramError, parse_command
from tests.tools.programs.corpus import SCRIPT


def test_profile_of_a_script() -> None:
    """Optimizers and features are named by what is used."""
    row = profile("train.py", SCRIPT)
    assert row is not None
    assert (row.optimizers, row.schedules, row.refused) == (("AdamW",), (), ())
    assert set(row.features) == {"clipping", "evaluation", "rate set by hand"}


def test_what_will_be_refused() -> None:
    """A reason each."""
    other = "\n\ndef other(loss):\n    loss.backward()\n"
    row = profile("train.py", SCRIPT.replace("torch.optim.AdamW", "torch.optim.Own").replace("\n\ndef main", f"{other}\n\ndef main"))
    assert row is not None
    assert any("Own" in reason for reason in row.refused)
    assert any("several functions" in reason for reason in row.refused)


def test_an_optimizer_with_a_closure_is_none_of_them() -> None:
    row = profile("train.py", SCRIPT.replace("torch.optim.AdamW", "torch.optim.LBFGS"))
    assert row is not None and (row.optimizers, row.refused) == (("LBFGS",), ())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("from torchdiffeq import odeint", "adaptive solvers"),
        ("import torch.utils.cpp_extension as ext", "C++ or CUDA"),
        ("from torch.distributed.pipelining import pipeline", "pipeline parallelism"),
    ],
)
def test_programs_that_are_refused_by_name(line: str, reason: str) -> None:
    """By what they import, before anything is run."""
    row = profile("train.py", f"{line}\n{SCRIPT}")
    assert row is not None
    assert [reason in text for text in row.refused] == [True]
    assert refusals(SCRIPT) == []


def test_a_library_is_no_program() -> None:
    """Functions that take gradients, in a file that runs nothing."""
    assert profile("lib.py", "import torch\n\ndef step(loss):\n    loss.backward()\n") is None


@pytest.mark.parametrize(
    "text", ["python train.py --steps 2", "CUDA_VISIBLE_DEVICES= python3 -u train.py --steps 2", "python -m train --steps 2"]
)
def test_commands(tmp_path: Path, text: str) -> None:
    """The ways to write one command."""
    (tmp_path / "train.py").touch()
    assert parse_command(text, tmp_path) == ("train.py", "--steps", "2")
    with pytest.raises(NoProgramError, match="no script"):
        parse_command("make train", tmp_path)


def test_a_recorded_command_becomes_a_table(tmp_path: Path) -> None:
    """Once, and with what stood in the file before."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "migrate.toml").write_text("[run]\njobs = 2\n")
    assert "a table" in note_program(tmp_path, ["python", "train.py", "--steps", "2"])
    assert (tmp_path / "migrate.toml").read_text() == '[run]\njobs = 2\n\n[[program]]\nrun = "python train.py --steps 2"\n'
    assert note_program(tmp_path, ["python", "train.py"]) == ""
