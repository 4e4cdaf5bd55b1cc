"""Names that code sets under conditions alone: the guess has the settings under which it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.infer import infer
from migrate_agent.tools.scan import scan

HEAD = "import torch\nfrom torch import nn\nclass Net(nn.Module):\n"
FORWARD = " def forward(self, x):\n  {}\n  return self.fc({})\n"
GUESSABLE = {
    "one of two switches in a configuration": (
        " def __init__(self, args):\n  super().__init__()\n  self.left, self.right = args.use_left, args.use_right\n"
        "  self.fc = nn.Linear(args.width, 4)\n"
        + FORWARD.format(
            "if self.left:\n   last = x\n  if self.right:\n   last = -x\n  total = [] if last is None else [last]", "total[0]"
        ),
        "use_left=True, use_right=True",
    ),
    "two that exclude each other": (
        " def __init__(self, left=False, right=False):\n  super().__init__()\n  assert not (left and right)\n"
        "  self.left, self.right, self.fc = left, right, nn.Linear(8, 4)\n"
        + FORWARD.format("if self.left:\n   last = x\n  elif self.right:\n   last = -x", "last"),
        "left=True",
    ),
    "a word": (
        " def __init__(self, mode='none'):\n  super().__init__()\n  self.kind, self.fc = mode, nn.Linear(8, 4)\n"
        + FORWARD.format("if self.kind in ('sum', 'mean'):\n   last = x + 1", "last"),
        "mode='sum'",
    ),
    "an attribute": (
        " def __init__(self, plain=True):\n  super().__init__()\n  if not plain:\n   self.fc = nn.Linear(8, 4)\n" + FORWARD.format("", "x"),
        "plain=False",
    ),
}


@pytest.mark.parametrize("name", GUESSABLE)
def test_what_is_set_under_conditions_is_set(name: str, sandbox: Sandbox, tmp_path: Path) -> None:
    source, wanted = GUESSABLE[name]
    (tmp_path / "source").mkdir()
    (tmp_path / "source/net.py").write_text(HEAD + source)
    inventory = scan(tmp_path / "source")
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None
    assert wanted in example.init


def test_an_argument_that_may_be_left_out_is_given_where_the_code_needs_it(sandbox: Sandbox, tmp_path: Path) -> None:
    source = (
        " def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(8, 4)\n def forward(self, x, y=None):\n  h = self.fc(x)\n"
        "  if y is not None:\n   out = h + self.fc(y)\n  return out\n"
    )
    (tmp_path / "source").mkdir()
    (tmp_path / "source/net.py").write_text(HEAD + source)
    inventory = scan(tmp_path / "source")
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None and "y=torch." in example.call


def test_a_view_of_what_is_not_laid_out_for_it_takes_one_sample(sandbox: Sandbox, tmp_path: Path) -> None:
    source = (
        " def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(8, 4)\n def forward(self, x):\n"
        "  assert x.dim() == 3\n  rows = x.transpose(0, 1)[:, :, 0].transpose(0, 1).transpose(0, 1).clone().view(-1)\n"
        "  return self.fc(x) + rows.mean()\n"
    )
    (tmp_path / "source").mkdir()
    (tmp_path / "source/net.py").write_text(HEAD + source)
    inventory = scan(tmp_path / "source")
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None and "torch.randn(1, " in example.call
