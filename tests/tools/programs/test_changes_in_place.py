"""What is changed in place between what it is computed from and the loss is part of the loss."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import gives
from tests.tools.programs.scripts import TRAIN, rewritten

LOSS = "    loss = F.cross_entropy(logits, y)\n"
PARTS = "    parts = []\n    for one in logits.unbind(1):\n        parts.append(one)\n"
STACKED = "    loss = F.cross_entropy(torch.stack(parts, 1), y)\n"
CASES = {
    "a list is turned round": (f"{PARTS}    parts.reverse()\n{STACKED}", "        parts.append(one)\n    parts.reverse()\n    loss ="),
    "a list is filled from its front": (f"{PARTS.replace('append(', 'insert(0, ')}{STACKED}", "        parts.insert(0, one)\n    loss ="),
    "a list loses one": (
        "    parts = [one.mean() for one in logits.unbind(1)]\n    parts.pop()\n    loss = F.cross_entropy(logits, y) + sum(parts)\n",
        "    parts.pop()\n    loss =",
    ),
    "parts of a loss have names": (
        "    losses = {}\n    losses['a'] = F.cross_entropy(logits, y)\n    losses.update(b=logits.mean())\n    loss = sum(losses.values())\n",
        '    losses = {}\n    losses["a"] = cross_entropy(logits, y)\n    losses.update(b=jnp.mean(logits))\n    loss = sum(losses.values())\n',
    ),
    "parts of a tensor": (f"    logits[:, 0] = 0.0\n{LOSS}", "    logits = logits.at[:, 0].set(0.0)\n    loss ="),
    "a tensor": (f"    logits.mul_(2)\n{LOSS}", "    logits = logits * 2\n    loss ="),
}


@pytest.mark.parametrize("label", CASES)
def test_the_loss_has_what_changes_it(label: str, tmp_path: Path) -> None:
    """After the step it would come too late."""
    before, after = CASES[label]
    draft = rewritten(TRAIN.replace(LOSS, before), tmp_path)
    assert draft.holes == ()
    text = draft.files["train_jax.py"]
    assert after in text.partition("def loss_fn")[2].partition("    return")[0]


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("x.append(y)", ["x"]),
        ("x[0].data.add_(y)", ["x"]),
        ("x['a'] += y", ["x"]),
        ("del x[0]", ["x"]),
        ("self.x.clear()", ["self.x"]),
        ("F.relu_(x)", ["x"]),
        ("x.fill_(y)", ["x"]),
        ("for a in b:\n    x[a] = 1", ["a", "x"]),
        ("y = x.pop()", ["y"]),
        ("x.step()", []),
        ("x.__init__()", []),
    ],
)
def test_names_that_a_statement_gives_values(statement: str, names: list[str]) -> None:
    assert gives(cst.parse_module(statement).body[0]) == names
