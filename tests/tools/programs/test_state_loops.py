"""Loops over the entries of state dictionaries go through the tensors themselves."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.passes.state_loops import StateLoops
from tests.tools.programs.scripts import TRAIN, rewritten

BOTH = "for kept, p in zip(ema.state_tensors(), model.state_tensors()):\n    kept.data.copy_({})\n"
CASES = {
    "values and keys": (
        "msd = model.state_dict()\nfor k, v in ema.state_dict().items():\n    v.copy_(v * d + (1 - d) * msd[k])\n",
        BOTH.format("kept * d + (1 - d) * p"),
    ),
    "two dictionaries": (
        "s = model.state_dict()\nt = ema.state_dict()\nfor key in s.keys():\n    t[key].data.copy_(t[key].data * d + s[key].data * (1 - d))\n",
        BOTH.format("kept * d + p * (1 - d)"),
    ),
    "loaded behind it": (
        "t = ema.state_dict()\ns = model.state_dict()\nfor key in s:\n    t[key] = s[key] * d + t[key] * (1 - d)\nema.load_state_dict(t)\nx = 1\n",
        BOTH.format("p * d + kept * (1 - d)") + "x = 1\n",
    ),
    "in steps, of floats": (
        "msd = model.state_dict()\nfor k, v in ema.state_dict().items():\n    if v.dtype.is_floating_point:\n        v *= d\n"
        "        v += (1 - d) * msd[k].detach()\n",
        BOTH.format("(kept * d) + ((1 - d) * p)"),
    ),
    "of one module": (
        "for k, v in self.ema.state_dict().items():\n    v.copy_(v * d)\n",
        "for kept in self.ema.state_tensors():\n    kept.data.copy_(kept * d)\n",
    ),
    "a dictionary that is kept": (
        "s = model.state_dict()\nfor k, v in ema.state_dict().items():\n    v.copy_(s[k])\ntorch.save(s, f)\n",
        "s = model.state_dict()\n" + BOTH.format("p") + "torch.save(s, f)\n",
    ),
}
KEPT = {
    "some keys": "for k, v in ema.state_dict().items():\n    if 'bn' not in k:\n        v.copy_(v * d)\n",
    "a dictionary that nothing loads": "t = ema.state_dict()\nfor k in t:\n    t[k] = t[k] * d\nprint(t)\n",
    "one that another module loads": "t = ema.state_dict()\nfor k in t:\n    t[k] = t[k] * d\nmodel.load_state_dict(t)\n",
    "what the key says": "for k, v in ema.state_dict().items():\n    v.copy_(v * rates[k])\n",
    "a dictionary of its own": "for k, v in kept.items():\n    v.copy_(v * d)\n",
    "three modules": "for k, v in a.state_dict().items():\n    v.copy_(b.state_dict()[k] + c.state_dict()[k])\n",
    "more than that": "for k, v in ema.state_dict().items():\n    print(k)\n",
}


def looped(text: str) -> str:
    """The script after the pass."""
    return cst.parse_module(text).visit(StateLoops(cst.parse_module(text))).code


@pytest.mark.parametrize("label", CASES)
def test_tensors_take_the_place_of_entries(label: str) -> None:
    before, after = CASES[label]
    assert looped(before) == after


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert looped(KEPT[label]) == KEPT[label]


@pytest.mark.ci
def test_an_average_of_weights_is_one_update(tmp_path: Path) -> None:
    made = "import copy\nema = copy.deepcopy(model)\n\n\ndef average(model, ema, d):\n    msd = model.state_dict()\n"
    made += "    with torch.no_grad():\n        for k, v in ema.state_dict().items():\n            v.copy_(v * d + (1 - d) * msd[k])\n\n\nfor step"
    text = TRAIN.replace("\nfor step", made, 1).replace("    optimizer.step()\n", "    optimizer.step()\n    average(model, ema, 0.9)\n")
    draft = rewritten(text, tmp_path)
    assert draft.holes == ()
    assert "lambda kept, p: kept * d + (1 - d) * p," in draft.files["train_jax.py"]
    assert "nnx.state(ema, nnx.Not(nnx.RngState))" in draft.files["train_jax.py"]
