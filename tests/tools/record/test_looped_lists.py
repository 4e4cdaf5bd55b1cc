"""Lists that a call goes through, and what else of it has one axis more than the layers take: guessed from what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.guessing.trials.equations_asked import shapes_asked
from migrate_agent.tools.record.guessing.trials.origins import Operand, Operation
from migrate_agent.tools.record.infer import infer

HEAD = "import torch\nfrom torch import nn\nclass Net(nn.Module):\n"

GUESSABLE = {
    "as many as the constructor is told of, between nodes": (
        " def __init__(self, c_in, c_out, support_len=3):\n  super().__init__()\n"
        "  self.mlp = nn.Conv2d((2 * support_len + 1) * c_in, c_out, 1)\n"
        " def forward(self, x, support):\n  out = [x]\n  for a in support:\n   once = torch.einsum('ncvl,vw->ncwl', (x, a))\n"
        "   out += [once, torch.einsum('ncvl,vw->ncwl', (once, a))]\n  return self.mlp(torch.cat(out, dim=1))\n",
        ("8, 8", "torch.randn(2, 8, 32, 32), [torch.randn(32, 32), torch.randn(32, 32), torch.randn(32, 32)]"),
    ),
    "as many as add up to what a layer takes": (
        " def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(5 * 6, 4)\n"
        " def forward(self, x, graphs):\n  return self.fc(torch.cat([x, *[g.t().mm(x) for g in graphs]], -1))\n",
        ("", "torch.randn(2, 10), [torch.randn(2, 2), torch.randn(2, 2)]"),
    ),
    "images one after the other, which a layer takes": (
        " def __init__(self):\n  super().__init__()\n  self.conv = nn.Conv2d(3, 4, 3)\n"
        " def forward(self, x):\n  return torch.stack([self.conv(x[:, t]) for t in range(x.size(1))], 1)\n",
        ("", "torch.randn(2, 3, 3, 16, 16)"),
    ),
    "images one after the other, which a layer takes that is looked up": (
        " def __init__(self):\n  super().__init__()\n  self.conv0 = nn.Conv2d(3, 4, 3)\n"
        " def forward(self, x):\n  out = []\n  for t in range(x.size(1)):\n   out.append(getattr(self, 'conv0')(x[:, t]))\n  return torch.stack(out, 1)\n",
        ("", "torch.randn(2, 3, 3, 32, 32)"),
    ),
    "images one after the other, beside what is made of the last": (
        " def __init__(self):\n  super().__init__()\n  self.conv = nn.Conv2d(3, 3, 3, padding=1)\n"
        " def forward(self, x):\n  h, errors = torch.zeros(x.size(0), 3, x.size(-2), x.size(-1)), 0\n"
        "  for t in range(x.size(1)):\n   h = self.conv(h)\n   errors = errors + (h - x[:, t]).abs().mean()\n  return errors\n",
        ("", "torch.randn(2, 3, 3, 32, 32)"),
    ),
}


@pytest.mark.parametrize("name", GUESSABLE)
def test_what_a_loop_goes_through(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source, wanted = GUESSABLE[name]
    inventory = repository({"net.py": HEAD + source})
    example = infer(inventory, inventory.units[-1], sandbox, tmp_path / "guess").example
    assert example is not None
    assert (example.init, example.call) == wanted


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ncvl,vw->ncwl", [(2, 3, 5, 7), (3, 5, 7)], {1: (5, 5)}),
        ("ncvl, vw", [(2, 3, 5, 7), (4, 6)], {1: (5, 5)}),
        ("bij,bjk->bik", [(2, 3, 5), (2, 5, 4)], {}),
        ("vw,ncvl->ncwl", [(3, 5, 7), (2, 3, 5, 7)], {0: (5, 5)}),
        ("ab,c->abc", [(2, 3), (4, 5)], {1: (8,)}),
        ("...ij,jk->...ik", [(2, 3, 5), (4, 6)], {}),
        ("", [(2, 3), (4, 5)], {}),
    ],
)
def test_what_an_equation_asks_for(equation: str, shapes: list[tuple[int, ...]], expected: dict[int, tuple[int, ...]]) -> None:
    operands = tuple(Operand(shape, (f"x{at}",)) for at, shape in enumerate(shapes))
    asked = {operand.origins[0]: shape for operand, shape in shapes_asked(Operation("einsum", operands, equation))}
    assert asked == {f"x{at}": shape for at, shape in expected.items()}
