"""Draws in the middle of the statements that a loss is computed by."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.passes.lifted_draws import LiftedDraws

HEAD = "import torch\n"
END = "loss = (net(x) - y).mean()\nloss.backward()\n"
CHANGE = {
    # All of a block without gradients runs, so that what is drawn in it may be drawn before it.
    "with torch.no_grad():\n    noise = torch.randn_like(x) * s\n    y = net(x + noise)\n": (
        "drawn = torch.randn_like(x)\nwith torch.no_grad():\n    noise = drawn * s\n    y = net(x + noise)\n"
    ),
    "# targets\nwith torch.no_grad():\n    eps = torch.rand(3)\n    y = net(x + eps, torch.randn(2))\n": (
        "# targets\ndrawn = torch.rand(3)\ndrawn_values = torch.randn(2)\nwith torch.no_grad():\n    eps = drawn\n    y = net(x + eps, drawn_values)\n"
    ),
    "y = net(x + torch.randn_like(x))\n": "drawn = torch.randn_like(x)\ny = net(x + drawn)\n",
}
KEEP = (
    # Not of the step, or a statement of its own.
    "x = x + torch.randn_like(x)\n",
    "noise = torch.randn_like(x)\ny = net(noise)\n",
    # Of a shape that the step computes, or not in any case.
    "h = net(x)\ny = h + torch.randn_like(h)\n",
    "with torch.no_grad():\n    h = net(x)\n    y = h + torch.randn_like(h)\n",
    "y = net(torch.randn_like(x) if noisy else x)\n",
    "if noisy:\n    y = net(torch.randn_like(x))\n",
)


def _rewritten(text: str) -> str:
    module = cst.parse_module(HEAD + text + END)
    return module.visit(LiftedDraws(module, Imports(HEAD), frozenset({"net"}))).code.removeprefix(HEAD).removesuffix(END)


@pytest.mark.parametrize("text", CHANGE)
def test_draws_stand_before_the_step(text: str) -> None:
    """In the order of the text."""
    assert _rewritten(text) == CHANGE[text]


@pytest.mark.parametrize("text", KEEP)
def test_other_draws_stay(text: str) -> None:
    """When unsure, nothing is rewritten."""
    assert _rewritten(text) == text
