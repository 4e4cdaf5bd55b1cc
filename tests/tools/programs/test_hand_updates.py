"""Updates that a script writes out by hand: which are known, what they become, and that the judge sees their steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from migrate_agent.tools.programs.hand_updates import hand_updates
from migrate_agent.tools.programs.judge.by_hand import updates_by_hand
from tests.tools.programs.scripts import TRAIN, body_of, rewritten

LOOP = "    for p in model.parameters():\n        "
OPTIMIZER = "optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\n"


def by_hand(statement: str, before: str = "lr = 0.1\n") -> str:
    """The script with this statement as its update."""
    text = TRAIN.replace(OPTIMIZER, before).replace("optimizer.zero_grad()", "model.zero_grad()")
    return text.replace("    optimizer.step()\n", LOOP + statement + "\n")


KNOWN = {
    "p.data.add_(p.grad, alpha=-lr)": "lr",
    "p.data.add_(-lr, p.grad.data)": "lr",
    "p.data.add_(-0.1 * p.grad)": "0.1",
    "p.data.sub_(p.grad.data * lr)": "lr",
    "p.data.sub_(p.grad, alpha=lr / 2)": "lr / 2",
    "p.data -= lr * p.grad": "lr",
    "p.data += -lr * p.grad": "lr",
    "p.data = p.data - lr * p.grad": "lr",
    "if p.grad is not None:\n            p.data -= lr * p.grad": "lr",
    "if p.grad is None:\n            continue\n        p.data -= lr * p.grad": "lr",
}
OTHER = (
    "p.data.add_(p.grad)",
    "p.data -= lr * p.grad.sign()",
    "p.data -= lr * (p.grad + 0.1 * p.data)",
    "p.data = lr * p.grad - p.data",
    "p.data.mul_(lr * p.grad)",
    "p.data -= lr * p.data * p.grad",
    "p.data -= lr * p.grad\n        p.data -= lr * p.grad",
    "p.grad.zero_()\n        p.data -= lr * p.grad",
)


@pytest.mark.parametrize("statement", KNOWN)
def test_updates_that_are_sgd(statement: str) -> None:
    """Each spelling of one step against the gradient."""
    (update,) = hand_updates(by_hand(statement))
    assert (update.module, update.rate, update.varies, update.name) == ("model", KNOWN[statement], False, "optimizer")


@pytest.mark.parametrize("statement", OTHER)
def test_other_updates_are_not_known(statement: str) -> None:
    """When unsure, nothing is taken for SGD."""
    assert hand_updates(by_hand(statement)) == []


def test_a_rate_that_changes_is_set_at_each_step(tmp_path: Path) -> None:
    """It is part of the optimizer's state, and begins with what the script says."""
    text = by_hand("p.data.sub_(lr * p.grad)", "start = 0.5\nlr = start\n").replace("step % 2 == 0:", "step % 2 == 0:\n        lr /= 2")
    body = body_of(rewritten(text, tmp_path))
    assert "(learning_rate=0.0)" in body or "(learning_rate=start)" in body
    step = body.index("    loss, logits = train_step(model, optimizer, x, y)")
    assert 0 < body.index("    set_hyperparameter(optimizer, lr)\n") < step


def test_the_rewrite_is_a_step_of_an_optimizer(tmp_path: Path) -> None:
    """As an engineer would write it."""
    body = body_of(rewritten(by_hand("p.data.add_(-0.1 * p.grad)"), tmp_path))
    assert "optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)" in body
    assert "for p in" not in body


TRAINING = """\
def train():
    for step in range(3):
        model(x).sum().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        model.zero_grad()


for epoch in range(2):
    train()
"""


class _Model(torch.nn.Linear):
    pass


@pytest.mark.parametrize("made", ["model = Model(2, 1)", "if True:\n    model = Model(2, 1)\nelse:\n    model = None\ncount = 0"])
def test_the_judge_sees_steps(tmp_path: Path, made: str) -> None:
    """The script computes the same, and each of its updates is noted."""
    script = tmp_path / "script.py"
    text = f"{made}\n{TRAINING}"
    script.write_text(text)
    steps: list[Any] = []
    space: dict[str, Any] = {"Model": _Model, "torch": torch, "x": torch.ones(4, 2)}
    with updates_by_hand(script, lambda optimizer: steps.append("made"), lambda optimizer: steps.append(optimizer.param_groups[0]["lr"])):
        marked = script.read_text()
        exec(marked, space)
    plain = {**space}
    torch.manual_seed(0)
    exec(text, plain)
    assert steps == ["made", *[0.1] * 6]
    assert script.read_text() == text
    assert marked.count("\n") == text.count("\n")
