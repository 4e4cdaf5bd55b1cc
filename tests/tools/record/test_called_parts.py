"""Modules that a class is handed and calls with several arguments: classes of the repository that take as many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import nn

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


LAYERS = (
    HEAD + "class Kernel(nn.Module):\n def forward(self, q, k, mask):\n  b, n, h, e = q.shape\n  return q + k, None\n"
    "class Attention(nn.Module):\n def __init__(self, kernel, width):\n  super().__init__()\n  self.kernel, self.q = kernel, nn.Linear(width, width)\n"
    " def forward(self, q, k, mask):\n  b, n, _ = q.shape\n  y, w = self.kernel(self.q(q).view(b, n, 2, -1), k.view(b, n, 2, -1), mask)\n"
    "  return y.reshape(b, n, -1), w\n"
    "class Layer(nn.Module):\n def __init__(self, attention, width):\n  super().__init__()\n  self.attention, self.norm = attention, nn.LayerNorm(width)\n"
    " def forward(self, x, mask=None):\n  y, w = self.attention(x, x, mask=mask)\n  return self.norm(x + y), w\n"
    "class Stack(nn.Module):\n def __init__(self, layers, norm=None):\n  super().__init__()\n  self.layers, self.norm = nn.ModuleList(layers), norm\n"
    " def forward(self, x, mask=None):\n  for layer in self.layers:\n   x, w = layer(x, mask=mask)\n  return x\n"
)


def test_parts_are_made_of_parts(repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"net.py": LAYERS})
    example = infer(inventory, inventory.unit("net.py:Stack"), sandbox, tmp_path / "guess").example
    assert example is not None
    layer = "Layer(attention=Attention(kernel=Kernel(), width=32), width=32)"
    assert example.init == f"[{layer}, {layer}]" and example.call == "torch.randn(2, 16, 32)"


class Calls:
    def __init__(self, net: Any, plain: Any, rest: Any, made: Any, named: Any, layers: Any, heads: Any) -> None:
        self.net, self.plain, self.rest, self.layer, self.named = net, plain, rest, made(3), named
        self.layers, self.heads = nn.ModuleList(layers), nn.ModuleList(heads) if heads is not None else None

    def forward(self, x: Any, c: Any) -> Any:
        first, second = self.net(x, c)
        for layer, head in zip(self.layers, self.heads, strict=False):  # type: ignore[arg-type]
            first = head(layer(first, mask=c))
        return self.plain(first), self.rest(*second), self.named(x, mask=c)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("net", Use(2, 2)),
        ("plain", Use(1, 0)),
        ("rest", None),
        ("made", None),
        ("named", Use(2, 0, ("mask",))),
        ("layers", Use(2, 0, ("mask",), listed=True)),
        ("heads", Use(1, 0, (), listed=True)),
    ],
)
def test_how_a_part_is_called(name: str, use: Use | None) -> None:
    assert use_of(Calls, name) == use


@pytest.mark.parametrize(("name", "whether"), [("Plain", False), ("Single", True), ("Masked", True), ("Absent", False)])
def test_which_classes_take_as_many_arguments(name: str, whether: bool) -> None:
    assert fits(PARTS, name, Use(2)) is whether


@pytest.mark.parametrize(("keyword", "whether"), [("scale", True), ("mask", False)])
def test_which_classes_take_a_name(keyword: str, whether: bool) -> None:
    assert fits(PARTS, "Plain", Use(2, 0, (keyword,))) is whether


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
