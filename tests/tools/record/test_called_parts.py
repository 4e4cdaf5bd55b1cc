"""Modules that a class is handed and calls with several arguments: classes of the repository that take as many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.guessing.objects.called_parts import Use, fits, use_of, without_options
from migrate_agent.tools.record.infer import infer

HEAD = "import torch\nfrom torch import nn\nimport numpy as np\n"
PARTS = (
    HEAD + "class Plain(nn.Module):\n def forward(self, x, scale=None):\n  return x\n"
    "class Single(nn.Module):\n def forward(self, x, c):\n  return x + c\n"
    "class Masked(nn.Module):\n def __init__(self, net, n_rows, dim):\n  super().__init__()\n  self.net, self.rows = net, nn.Embedding(n_rows, dim)\n"
    "  self.rows.weight.data.copy_(torch.tensor(np.zeros([n_rows, dim])))\n"
    " def forward(self, x, c):\n  h = self.net(x) * self.rows(c)\n  return h, h.norm()\n"
)
WRAPPER = (
    HEAD + "class Net(nn.Module):\n def __init__(self, embedder):\n  super().__init__()\n  self.embedder = embedder\n"
    " def forward(self, x, y, c):\n  a, norm = self.embedder(x, c)\n  b, other = self.embedder(y, c)\n  return a - b, norm + other\n"
)


def test_a_part_of_the_repository_is_called(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"parts.py": PARTS, "net.py": WRAPPER})
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None
    assert example.init.startswith("Masked(") and example.setup == "from parts import Masked"
    assert example.call.count("randn") == 2 and example.call.count("randint") == 1


class Calls:
    def __init__(self, net: Any, plain: Any, rest: Any, made: Any) -> None:
        self.net, self.plain, self.rest, self.layer = net, plain, rest, made(3)

    def forward(self, x: Any, c: Any) -> Any:
        first, second = self.net(x, c)
        return self.plain(first), self.rest(*second)


@pytest.mark.parametrize(("name", "use"), [("net", Use(2, 2)), ("plain", Use(1, 0)), ("rest", None), ("made", None)])
def test_how_a_part_is_called(name: str, use: Use | None) -> None:
    assert use_of(Calls, name) == use


@pytest.mark.parametrize(("name", "whether"), [("Plain", False), ("Single", True), ("Masked", True), ("Absent", False)])
def test_which_classes_take_as_many_arguments(name: str, whether: bool) -> None:
    assert fits(PARTS, name, Use(2)) is whether


def test_layers_whose_second_argument_is_an_option_take_one() -> None:
    texts = ("64", "torch.nn.Identity()", "torch.nn.ReLU", "torch.nn.functional.relu", "torch.nn.Bilinear(8, 8, 4)", "Own()")
    assert [*without_options(texts, Use(2))] == ["64", "torch.nn.Bilinear(8, 8, 4)", "Own()"]


def test_a_part_that_is_named_after_a_class_is_one(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source = (
        HEAD + "class NetPool(nn.Module):\n def forward(self, x):\n  return x.mean(-1)\n"
        "class Net(nn.Module):\n def __init__(self, base, net_pool):\n  super().__init__()\n  self.base, self.net_pool = base, net_pool\n"
        " def forward(self, x):\n  x = self.base(x)\n  return self.net_pool(x)\n"
    )
    inventory = repository({"net.py": source})
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None and example.init == "torch.nn.Tanh(), NetPool()"
