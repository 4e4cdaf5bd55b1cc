"""Where a judged program may write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import pytest

from migrate_agent.tools.programs.judge.candidate import _wait
from migrate_agent.tools.programs.judge.contract import Trace

PROGRAM = """
import os, sys
from pathlib import Path
from migrate_agent.tools.programs.judge.running import program_folder

sys.path.insert(0, sys.argv[1])
statement = sys.argv[3]
with program_folder(Path(sys.argv[2]), {"command": ["sub/train.py"], "folder": "sub"}):
    exec(statement)
print("ended")
"""


def run(statement: str, folder: Path) -> str:
    """The last line of what a process says that runs a statement as a program."""
    (folder / "repository" / "sub").mkdir(parents=True)
    (folder / "repository" / "sub" / "train.py").write_text("")
    (folder / "output").mkdir()
    command = [sys.executable, "-c", PROGRAM, str(folder / "repository"), str(folder / "output"), statement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize(
    "statement",
    [
        "open('log.txt', 'w')",
        "open('../log.txt', 'w')",
        "os.makedirs('../out/deep'); os.rename('../out/deep', '../deep')",
        "open('/dev/null', 'w')",
        "open('../../../repository/sub/train.py')",
    ],
)
def test_inside(statement: str, tmp_path: Path) -> None:
    """Anywhere in the repository; elsewhere it may read."""
    assert run(statement, tmp_path) == "ended"


@pytest.mark.parametrize(
    ("statement", "path"),
    [
        ("open('../../log.txt', 'w')", "../../log.txt"),
        ("open('../../../log.txt', 'a')", "../../../log.txt"),
        ("os.mkdir('../../out')", "../../out"),
        ("open('log.txt', 'w'); os.rename('log.txt', '../../log.txt')", "../../log.txt"),
        ("os.chdir('..'); open('../log.txt', 'w')", "../log.txt"),
        # By a way that Python does not hear of.
        ("os.system('touch ../../log.txt')", "../log.txt"),
    ],
)
def test_outside(statement: str, path: str, tmp_path: Path) -> None:
    assert run(statement, tmp_path).endswith(f"OutsideError: the program writes outside of its repository: {path}")


@pytest.mark.parametrize("ended", [True, False])
def test_what_ends_a_program_may_arrive_late(monkeypatch: pytest.MonkeyPatch, ended: bool) -> None:
    """A step that a callback ends raises when its effects are waited for; any other error there is the program's."""

    def barrier() -> None:
        raise RuntimeError("of a callback")

    monkeypatch.setattr(jax, "effects_barrier", barrier)
    trace = Trace(6, ())
    trace.done = ended
    if ended:
        _wait(trace)
        return
    with pytest.raises(RuntimeError):
        _wait(trace)


def test_streams_without_a_seed_begin_alike() -> None:
    """Those that an environment makes with `None`, and those of Python, are numbered."""
    text = (
        "import random\nimport numpy as np\nfirst, second = np.random.default_rng(0).random(), np.random.default_rng(1).random()\n"
        "from migrate_agent.tools.programs.judge.running import seed_host_streams\nseed_host_streams()\n"
        "print(np.random.default_rng().random() == first, np.random.default_rng(None).random() == second, np.random.SeedSequence(None).entropy)\n"
        "print(np.random.default_rng(1).random() == second, np.random.SeedSequence(7).entropy, round(random.random(), 3))\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True True 2", "True 7 0.844"]
