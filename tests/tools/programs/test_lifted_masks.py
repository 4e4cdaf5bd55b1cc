"""Masks that are there before a step select by their places."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports, code
from migrate_agent.tools.programs.rewrite.passes.lifted_masks import LiftedMasks
from tests.tools.programs.scripts import TRAIN, rewritten

HEAD = "import torch\n"
CASES = {
    "of two tensors": (
        "out = model(x)\n# Why.\nloss = f(out[mask], y[mask])\nloss.backward()\n",
        "out = model(x)\n# Why.\nmask_places = torch.nonzero(mask, as_tuple=True)\nloss = f(out[mask_places], y[mask_places])\nloss.backward()\n",
    ),
    "an attribute, in a loop": (
        "for data in xs:\n    loss = f(model(x)[data.mask])\n    loss.backward()\n",
        "for data in xs:\n    mask_places = torch.nonzero(data.mask, as_tuple=True)\n    loss = f(model(x)[mask_places])\n    loss.backward()\n",
    ),
}
KEPT = {
    "a mask that the step computes": "mask = model(x) > 0\nloss = f(y[mask])\nloss.backward()\n",
    "what is assigned to": "out = model(x)\nout[mask] = out * 0\nloss = f(out)\nloss.backward()\n",
    "a part of an index": "loss = f(model(x)[mask, 1])\nloss.backward()\n",
    "after the step": "loss = f(model(x))\nloss.backward()\nprint(y[mask])\n",
    "no mask": "loss = f(model(x)[places])\nloss.backward()\n",
}


def lifted(text: str) -> str:
    """The script after the pass, where all that is called `mask` is one."""
    module = cst.parse_module(HEAD + text)
    change = LiftedMasks(module, Imports(module.code), frozenset({"model"}), lambda node: code(node).endswith("mask"))
    return module.visit(change).code.removeprefix(HEAD)


@pytest.mark.parametrize("label", CASES)
def test_places_are_found_before_the_step(label: str) -> None:
    before, after = CASES[label]
    assert lifted(before) == after


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert lifted(KEPT[label]) == KEPT[label]


@pytest.mark.ci
def test_the_step_is_handed_places(tmp_path: Path) -> None:
    text = TRAIN.replace("\nfor step", "mask = torch.arange(8) % 2 == 0\n\nfor step", 1)
    draft = rewritten(text.replace("cross_entropy(logits, y)", "cross_entropy(logits[mask], y[mask])"), tmp_path)
    assert draft.holes == ()
    text = draft.files["train_jax.py"]
    assert "    mask_places = jnp.nonzero(mask)\n" in text
    assert "cross_entropy(logits[mask_places], y[mask_places])" in text
