"""Shapes that depend on values, in code of a script that nothing traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.programs.scripts import TRAIN, rewritten

AFTER = {
    "found = (inputs > 0).nonzero()": "found = jnp.argwhere(inputs > 0)",
    "found = torch.nonzero(inputs, as_tuple=True)": "found = jnp.nonzero(inputs)",
    "found = torch.where(inputs > 0)": "found = jnp.nonzero(inputs > 0)",
    "found = torch.unique(targets)": "found = jnp.unique(targets)",
    "found, counts = targets.unique(return_counts=True)": "found, counts = jnp.unique(targets, return_counts=True)",
    "found = torch.masked_select(inputs, inputs > 0)": "found = inputs[inputs > 0]",
    "found = inputs[targets == 1]": "found = inputs[targets == 1]",
    "found = torch.bincount(targets)": "found = jnp.bincount(targets, minlength=0)",
}
PLAINLY = {
    "classes = torch.arange(3).unsqueeze(1)\nfound = [classes[i].item() for i in range(3)]": "classes = jnp.expand_dims(jnp.arange(3), 1)\n",
    "found = inputs[:3, :3][~torch.eye(3).bool()]": "found = inputs[:3, :3][~jnp.eye(3).astype(bool)]",
}
REFUSED = ("found = torch.unique(targets, sorted=False)", "found = torch.masked_select(inputs, inputs[:1] > 0)")
IN_THE_LOSS = "    loss = F.cross_entropy(logits, y) + logits[(logits > 0).nonzero()[:, 0]].mean()\n"


@pytest.mark.parametrize("text", AFTER)
def test_a_script_may_ask_for_values(text: str, tmp_path: Path) -> None:
    """Outside of the step all values are there."""
    draft = rewritten(f"{TRAIN}{text}\nprint(len(found))\n", tmp_path)
    assert draft.holes == ()
    assert AFTER[text] in draft.files["train_jax.py"]


@pytest.mark.parametrize("text", PLAINLY)
def test_numbers_are_there_without_more(text: str, tmp_path: Path) -> None:
    """Nothing need be computed while something is traced."""
    draft = rewritten(f"{TRAIN}{text}\nprint(len(found))\n", tmp_path)
    assert draft.holes == () and "concrete(" not in draft.files["train_jax.py"]
    assert PLAINLY[text] in draft.files["train_jax.py"]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_torchs_own_result_is_a_hole(text: str, tmp_path: Path) -> None:
    """An order that torch does not promise, and an index that does not broadcast."""
    assert rewritten(f"{TRAIN}{text}\nprint(len(found))\n", tmp_path).holes


def test_a_step_may_not(tmp_path: Path) -> None:
    """What is compiled has fixed shapes."""
    assert rewritten(TRAIN.replace("    loss = F.cross_entropy(logits, y)\n", IN_THE_LOSS), tmp_path).holes
