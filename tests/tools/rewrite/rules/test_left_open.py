"""What no rule rewrites exactly is a hole that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.rewrite.rules.environment.devices import DropDevicePlumbing
from tests.tools.rewrite.snippets import rewrite_snippet

MODULE = "import torch\nfrom torch import nn\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Parameter(torch.zeros(3))\n"
PLACES = (
    "    def forward(self, x: torch.Tensor, mask: torch.Tensor):\n        out = torch.zeros_like(x)\n"
    "        places = mask.nonzero()[:, 0]\n"
)
ROWS = (
    ("        self.table = {'a': self.a}\n", "kept in a container"),
    ("        self.both = [self.a, (self.a, 1)]\n", "kept in a container"),
    ("        self.a.__class__ = nn.Module\n", "__class__ is set"),
    ("    def forward(self, x: torch.Tensor):\n        return torch.arange(x.sum() + 1)\n", "depends on a tensor's value"),
    (
        "    def forward(self, x: torch.Tensor, other: torch.Tensor):\n        x = x.clone()\n        places = torch.nonzero(x[:, 0] > 0)\n"
        "        if places.numel() > 0:\n            x.index_fill_(0, other, 7.0)\n            x.index_fill_(0, places.squeeze(1), 0.0)\n"
        "        return x\n",
        "depends on values",
    ),
    (PLACES + "        return x[places]\n", "depends on values"),
    (PLACES + "        out[places] = torch.softmax(x[places], dim=0)\n        return out\n", "depends on values"),
    (PLACES + "        out[places] = x[places] / len(places)\n        return out\n", "depends on values"),
    (PLACES + "        out[places] = x[(mask > 1).nonzero()[:, 0]]\n        return out\n", "depends on values"),
    (
        PLACES + "        rows = x[places]\n        def total():\n            return rows.sum()\n        return total()\n",
        "depends on values",
    ),
    (PLACES + "        out[2 : 3 + len(places)] = x[places]\n        return out\n", "depends on values"),
    (
        PLACES + "        last = 0\n        for i in range(2):\n            if len(places) == 0:\n                continue\n"
        "            out[places] = x[places]\n            last = i\n"
        "        return out, last\n",
        "depends on values",
    ),
    (
        "    def forward(self, x):\n        return x\n\nclass N(M):\n    def __init__(self):\n        super().__init__()\n"
        "        self.average = torch.optim.swa_utils.AveragedModel(M())\n",
        "no rule for torch.optim.swa_utils.AveragedModel",
    ),
    (
        "        self.net = nn.Sequential(nn.Sequential(self.step))\n    def step(self, x):\n        return x + self.a\n",
        "which is given away",
    ),
    (
        "    def __call__(self, x):\n        return super().__call__(x) + 1\n    def forward(self, x):\n        return x\n",
        "a `__call__` of its own",
    ),
    ("    def forward(self, i):\n        return eval('self.a[%d]' % i)\n", "eval reaches out"),
    ("    def forward(self, i):\n        return eval('nn.a' + i)\n", "eval reaches out"),
    ("def patch():\n    torch.add = M.forward\n", "gives torch.add another meaning"),
)


@pytest.mark.parametrize(("line", "reason"), ROWS)
def test_left_open(line: str, reason: str, tmp_path: Path) -> None:
    _, holes = rewrite_snippet(tmp_path, MODULE + line)
    assert holes and all(reason in hole.reason for hole in holes)


@pytest.mark.parametrize(("call", "holes"), [("x", 0), ("x * size((2, 3))", 1)])
def test_numbers_of_functions_that_only_constructors_call(call: str, holes: int, tmp_path: Path) -> None:
    """`int` of a tensor runs once while a module is made, and would be traced where a call reaches it."""
    source = (
        "import torch\nfrom torch import nn\n\ndef size(shape):\n    return int(torch.prod(torch.tensor(shape)))\n\nclass M(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        self.n = size((2, 3))\n    def forward(self, x):\n        return {call}\n"
    )
    assert len(rewrite_snippet(tmp_path, source)[1]) == holes


def test_a_rule_that_raises_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise KeyError("no such row")

    monkeypatch.setattr(DropDevicePlumbing, "leave_Assign", raises)
    _, holes = rewrite_snippet(tmp_path, "import torch\n\ndef f(x: torch.Tensor):\n    y = x + 1\n    return y\n")
    assert [hole.reason for hole in holes] == ["the rule DropDevicePlumbing ended with KeyError: 'no such row'"]
