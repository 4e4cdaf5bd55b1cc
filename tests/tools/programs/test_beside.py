"""Files beside the script that are a program's own code: what is rewritten as such, and which of their lines count."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.programs.judge.beside import Beside, missed_beside
from migrate_agent.tools.programs.judge.compare import reach
from migrate_agent.tools.programs.observe import observe
from migrate_agent.tools.programs.program import NoProgramError, Program, parse_program
from migrate_agent.tools.programs.rewrite.assemble import rewrite_program
from migrate_agent.tools.programs.rewrite.program_files import ProgramFiles
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Limits

FILE = Beside("lib.py", "lib_jax.py", ("Trainer", "helper", "idle"))


@pytest.mark.parametrize(
    ("originals", "candidates", "missed"),
    [
        # Reached in one of two runs.
        ([{"helper": [3, 4]}, {"helper": [4]}], [{"helper": []}, {"helper": []}], [((4,), ())]),
        ([{"helper": []}], [{"helper": [7]}], [((), (7,))]),
        # What the mirror does not hold needs no run.
        ([{"helper": [], "idle": [9]}], [{"helper": []}], []),
    ],
)
def test_lines_that_no_run_reaches(
    originals: list[dict[str, list[int]]], candidates: list[dict[str, list[int]]], missed: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    """Lines of either side count, of what both have."""
    rows = missed_beside([FILE], [{"lib.py": run} for run in originals], [{"lib_jax.py": run} for run in candidates])
    assert [(row.original, row.rewrite) for row in rows] == missed
    assert reach(([], []), beside=rows).status == ("unverified" if missed else "pass")


MODEL = """\
import torch
import torch.nn as nn
from maths import scaled


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return scaled(self.fc(x))
"""
MATHS = (
    "def scaled(x):\n    return 2 * x\n\n\ndef mse(a, b):\n    return ((a - b) ** 2).mean()\n\n\ndef told(text):\n    print('>', text)\n"
)
TRAINER = """\
import torch
from torch.utils.data import DataLoader, Dataset
from maths import mse


class Numbers(Dataset):
    def __init__(self, count):
        self.x = torch.randn(count, 4)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.x[i, :2]


class Trainer:
    def __init__(self, model, optimizer, config):
        self.model, self.optimizer, self.config = model, optimizer, config

    def fit(self, data):
        for x, y in DataLoader(data, batch_size=8, shuffle=True):
            self.optimizer.zero_grad()
            self.loss = mse(self.model(x), y)
            self.loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["clip"])
            self.optimizer.step()
"""
SCRIPT = """\
import torch
from maths import told
from model import Net
from trainer import Numbers, Trainer

torch.manual_seed(0)
data = Numbers(32)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
trainer = Trainer(model, optimizer, {"clip": 1.0})
trainer.fit(data)
told(f"{trainer.loss.item():.4f}")
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A program of four files."""
    root = tmp_path / "repository"
    root.mkdir()
    for name, text in {"model": MODEL, "maths": MATHS, "trainer": TRAINER, "train": SCRIPT}.items():
        (root / f"{name}.py").write_text(text)
    return root


def test_what_modules_use_is_traced(repository: Path) -> None:
    """And so is what the losses read; the rest runs in Python."""
    files = ProgramFiles(scan(repository), "train.py")
    assert ("maths.py", "scaled") in files.traced()
    assert ("maths.py", "mse") in files.traced([("maths.py", "mse")])
    assert {one.source: one.names for one in files.beside()}["trainer.py"] == ("Numbers", "Trainer")


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("def small(width):\n    return Net()\n", True),
        ("def report(width):\n    return str(width)\n", False),
        # Its step would be looked at too.
        ("def fit(x):\n    Net()(x).backward()\n", False),
    ],
)
def test_functions_that_construct_are_the_programs_own(repository: Path, text: str, own: bool) -> None:
    """The script may call them by a name that it is told, where nothing can hand them streams."""
    (repository / "small.py").write_text(f"from model import Net\n\n\n{text}")
    (repository / "train.py").write_text("import small\n" + SCRIPT)
    files = ProgramFiles(scan(repository), "train.py")
    assert ("small.py" in files.own(files.traced())) is own


@pytest.mark.ci
def test_a_trainer_in_another_file(repository: Path, tmp_path: Path, sandbox: ProcessSandbox) -> None:
    """Its step is taken out there, its data set is one of the helpers', and the loss that others read stays an attribute."""
    inventory, program = scan(repository), Program(("train.py",))
    seen = observe(program, inventory, sandbox, tmp_path / "recording", Limits(seconds=120))
    units = [unit.id for unit in inventory.units if unit.kind == "module"]
    draft = rewrite_program(inventory, seen.recording.observations, program, tmp_path, units, seen.optimizers)
    assert draft.holes == ()
    trainer = draft.files["trainer_jax.py"]
    assert "self.loss = train_step(self.model, self.optimizer, x, y, self.config[" in trainer
    assert "class Numbers(Dataset):" in trainer and "default_generator.randn(count, 4)" in trainer
    assert "nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)" in draft.files["train_jax.py"]


@pytest.mark.parametrize(
    ("text", "command", "folder"),
    [
        ("python train.py --x 1", ("train.py", "--x", "1"), ""),
        ("cd demo && python train.py", ("demo/train.py",), "demo"),
        ("cd demo && python ../train.py", ("train.py",), "demo"),
    ],
)
def test_a_program_runs_in_its_folder(tmp_path: Path, text: str, command: tuple[str, ...], folder: str) -> None:
    """The script is named from the repository's root."""
    (tmp_path / "demo").mkdir()
    for path in ("train.py", "demo/train.py"):
        (tmp_path / path).write_text("")
    program = parse_program(text, tmp_path)
    assert (program.command, program.folder) == (command, folder)


@pytest.mark.parametrize("text", ["cd .. && python train.py", "cd nowhere && python train.py", "make"])
def test_other_commands_run_no_program(tmp_path: Path, text: str) -> None:
    """One line says so."""
    (tmp_path / "train.py").write_text("")
    with pytest.raises(NoProgramError):
        parse_program(text, tmp_path)
