"""`backward()` with a gradient of its own."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.normalise import Normalise
from tests.tools.programs.scripts import TRAIN, rewritten

CHANGE = {
    "loss.backward(mone)\n": "(loss * mone).sum().backward()\n",
    "d(x).mean().backward(gradient=one, retain_graph=True)\n": "(d(x).mean() * one).sum().backward(retain_graph=True)\n",
    "(a + b).backward(torch.ones_like(a))\n": "((a + b) * torch.ones_like(a)).sum().backward()\n",
    "loss.backward(-one)\n": "(loss * (-one)).sum().backward()\n",
    "loss.backward(None)\n": "loss.backward()\n",
}
KEEP = ("loss.backward()\n", "loss.backward(retain_graph=True)\n", "loss.backward(*rest)\n", "loss.backward(one, True)\n")


def _normalised(text: str) -> str:
    module = cst.parse_module(text)
    return module.visit(Normalise(module, Imports(text))).code


@pytest.mark.parametrize("text", CHANGE)
def test_a_weight_becomes_a_factor(text: str) -> None:
    """The gradient of the sum of both."""
    assert _normalised(text) == CHANGE[text]


@pytest.mark.parametrize("text", KEEP)
def test_other_calls_stay(text: str) -> None:
    """Options have no weight."""
    assert _normalised(text) == text


def test_a_script_with_one(tmp_path: Path) -> None:
    """The factor is part of the loss."""
    text = TRAIN.replace("    loss.backward()\n", "    loss.view(1).backward(minus)\n").replace(
        "model = Net()\n", "model = Net()\nminus = -torch.ones(1)\n"
    )
    draft = rewritten(text, tmp_path)
    assert draft.holes == ()
    assert "jnp.sum(loss.reshape(1) * minus)" in draft.files["train_jax.py"]
