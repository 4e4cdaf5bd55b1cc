"""The weights that modules begin with, and those that a program goes on with in place of what it trained."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from migrate_agent.tools.programs.judge.compare import Pair, Ran, parameters

SCRIPT = """
import torch
from migrate_agent.tools.programs.judge.made_modules import watch_made_modules

made = []
watch_made_modules(lambda module: made.append(type(module).__name__))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 3)


class Deep(Net):
    def __init__(self):
        super().__init__()
        self.more = torch.nn.Sequential(Net(), torch.nn.ReLU())


class Same(Net):
    pass


Net(), Deep(), Same(), torch.nn.CrossEntropyLoss(), torch.nn.Linear(1, 1)
try:
    torch.nn.Linear("two", 1)
except TypeError:
    pass
Net()
print(made)
"""


def test_modules_are_noted_once_they_are_whole() -> None:
    """Not their parts, not what has no weights, and not what was never made."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['Net', 'Deep', 'Same', 'Linear', 'Net']"


@pytest.mark.parametrize(
    ("ours", "status"),
    [
        ({"end/0/w": 2.0}, "pass"),
        # Torch's optimizer still has the module that was trained.
        ({"end/0/w": 1.0}, "pass"),
        ({"end/0/w": 3.0}, "fail"),
    ],
)
def test_the_end_is_that_of_either_module(ours: dict[str, float], status: str) -> None:
    def ran(values: dict[str, float]) -> Ran:
        return Ran({"partial": False}, {name: np.full(3, value) for name, value in values.items()})

    original = ran({"made/0/w": 5.0, "start/0/w": 0.0, "end/0/w": 1.0, "unpickled/0/w": 2.0})
    assert parameters(Pair(original, original, ran(ours))).status == status
