"""Recording while a user's command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from migrate_agent.tests.sampling import first_quick
from migrate_agent.tools.record import load_recording
from migrate_agent.tools.record.command import record_command
from migrate_agent.tools.types import Recording

MODEL = """
    import torch
    from torch import nn

    class Inner(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.fc = nn.Linear(size, size)

        def forward(self, x, scale=None):
            return self.fc(x)

    class Net(nn.Module):
        def __init__(self, size=4):
            super().__init__()
            self.inner = Inner(size)

        def forward(self, x):
            return self.inner(x, scale=2)
"""
RUN = "import torch\nfrom model import Net\nNet()(torch.zeros(2, 4))\n"
IN_SCRIPT = (
    "import torch\nfrom torch import nn\nclass Local(nn.Module):\n    def forward(self, x):\n        return x\nLocal()(torch.zeros(2))\n"
)
WORKERS = """
    import {module} as multiprocessing
    from step import step
    if __name__ == "__main__":
        worker = multiprocessing.get_context("{method}").Process(target=step)
        worker.start()
        worker.join()
        raise SystemExit(worker.exitcode)
"""
FILES = {
    "model.py": MODEL,
    "step.py": "def step():\n    import torch\n    torch.set_num_threads(1)\n    from model import Net\n    Net()(torch.zeros(2, 4))\n",
    "run.py": RUN,
    "raises.py": RUN + "raise RuntimeError('after the call')\n",
    "exits.py": RUN + "raise SystemExit(3)\n",
    "killed.py": RUN + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "script.py": IN_SCRIPT,
    "child.py": "import subprocess, sys\nsubprocess.run([sys.executable, 'run.py'], check=True)\n",
    "forked.py": WORKERS.format(module="multiprocessing", method="fork"),
    "spawned.py": WORKERS.format(module="multiprocessing", method="spawn"),
    "tests/test_net.py": "import torch\nfrom model import Net\ndef test_net():\n    assert Net()(torch.zeros(2, 4)).shape == (2, 4)\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "unrelated.py": "print('nothing')\n",
}

COMMANDS: dict[str, tuple[Sequence[str], str]] = {
    "script": (["run.py"], ""),
    "module": (["-m", "run"], ""),
    "pytest": (["-m", "pytest", "-q", "-p", "no:cacheprovider"], ""),
    "subprocess": (["child.py"], ""),
    "forked worker": (["forked.py"], ""),
    "spawned worker": (["spawned.py"], ""),
    "exception": (["raises.py"], "the command ended with exit status 1"),
    "exit": (["exits.py"], "the command ended with exit status 3"),
    "killed": (["killed.py"], "the command was killed by signal 9"),
}


def run(inventory: Any, arguments: Sequence[str], folder: Path) -> Recording:
    return record_command(inventory, [sys.executable, *arguments], folder, save_seconds=0)


@pytest.mark.parametrize("name", first_quick(3, COMMANDS))
def test_modules_are_recorded(name: str, repository: Any, tmp_path: Path) -> None:
    arguments, problem = COMMANDS[name]
    found = run(repository(FILES), arguments, tmp_path / "out")
    assert dict(found.errors) == ({"command": problem} if problem else {})
    assert {(example.unit, example.init, example.call) for example in found.examples} == {
        ("model.py:Inner", "4", '_tensors["call0"], scale=2'),
        ("model.py:Net", "", '_tensors["call0"]'),
    }
    assert ("module:torch.nn.Linear",) in {seen.kinds for seen in found.observations["model.py"].values()}
    assert load_recording(tmp_path / "out") == found
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".json", ".safetensors"}


def test_classes_of_the_script_itself_are_recorded(repository: Any, tmp_path: Path) -> None:
    found = run(repository(FILES), ["script.py"], tmp_path / "out")
    assert [(example.unit, example.call) for example in found.examples] == [("script.py:Local", '_tensors["call0"]')]


def test_the_users_own_sitecustomize_still_runs(repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "site"
    place.mkdir()
    (place / "sitecustomize.py").write_text("import os\nos.environ['SEEN'] = 'yes'\n")
    monkeypatch.setenv("PYTHONPATH", str(place))
    inventory = repository({**FILES, "run.py": "import os\nassert os.environ['SEEN'] == 'yes'\nfrom step import step\nstep()\n"})
    found = run(inventory, ["run.py"], tmp_path / "out")
    assert found.errors == {}
    assert len(found.examples) == 2


def test_a_command_that_uses_nothing_of_the_repository_is_told(repository: Any, tmp_path: Path) -> None:
    found = run(repository(FILES), ["unrelated.py"], tmp_path / "out")
    assert "used no file of the repository" in found.errors["command"]


def test_a_command_that_does_not_exist_is_an_error_and_leaves_nothing(repository: Any, tmp_path: Path) -> None:
    inventory = repository(FILES)
    with pytest.raises(FileNotFoundError, match="no-such-program-here"):
        record_command(inventory, ["no-such-program-here"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="no command"):
        record_command(inventory, [], tmp_path / "out")


def test_an_equal_example_from_two_processes_is_kept_once(repository: Any, tmp_path: Path) -> None:
    twice = "import subprocess, sys\nfor _ in range(2):\n    subprocess.run([sys.executable, 'run.py'], check=True)\n"
    found = run(repository({**FILES, "child.py": twice}), ["child.py"], tmp_path / "out")
    assert len(found.examples) == 2
