"""Optimizers of modules that are parts of those which a loss calls."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from migrate_agent.tools.programs.contained import Contained, contained
from tests.tools.programs.scripts import TRAIN, rewritten

WRAPPED = (
    TRAIN.replace(
        "\nfor step",
        """
class WithLoss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        return F.cross_entropy(self.net(x), y, reduction="none")


whole = WithLoss(model)

for step""",
    ).partition("    logits =")[0]
    + """    loss = whole(x, y).mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item())
"""
)
PART = Contained("whole", "model", ("net",), True)


def test_parts_are_found_by_their_names() -> None:
    """Also attributes of `self`, and what a module only wraps."""
    part = torch.nn.Linear(2, 2)
    whole = torch.nn.ModuleDict({"a": torch.nn.ModuleDict({"b": part}), "c": torch.nn.Linear(1, 1)})
    owner = type("Owner", (), {})()
    owner.part = part
    rows = set(contained({"whole": whole, "self": owner, "parallel": torch.nn.DataParallel(part), "list": torch.nn.ModuleList([part])}))
    assert Contained("whole", "self.part", ("a", "b"), False) in rows
    assert Contained("parallel", "self.part", (), True) in rows
    assert not any("list" in (row.whole, row.part) for row in rows)


def test_a_part_is_updated_with_its_own_gradients(tmp_path: Path) -> None:
    text = rewritten(WRAPPED, tmp_path, contained=(PART,)).files["train_jax.py"]
    assert "loss, grads = nnx.value_and_grad(loss_fn)(whole, x, y)\n" in text
    assert '    grads = grads["net"]\n    grads, _ = clip_grad_norm(grads, 1.0)\n    optimizer.update(whole.net, grads)\n' in text
    assert "loss = train_step(whole, optimizer, x, y)" in text


def test_a_module_may_have_two_names(tmp_path: Path) -> None:
    text = (
        TRAIN.replace("model = Net()\n", "net = Net()\n")
        .replace("model.parameters()", "net.parameters()")
        .replace("\nfor", "model = net\n\nfor", 1)
    )
    draft = rewritten(text, tmp_path, contained=(Contained("model", "net", (), True), Contained("net", "model", (), True)))
    assert draft.holes == ()
    assert "    optimizer.update(model, grads)\n" in draft.files["train_jax.py"]


@pytest.mark.parametrize("rows", [(), (PART, Contained("other", "model", ("net",), True))])
def test_other_modules_are_no_parts(tmp_path: Path, rows: tuple[Contained, ...]) -> None:
    """What nothing says to be a part stays a hole."""
    draft = rewritten(WRAPPED, tmp_path, contained=rows)
    assert bool(draft.holes) == (not rows)


def test_gradients_of_a_part_add_up(tmp_path: Path) -> None:
    """They begin as zeros of the part."""
    text = WRAPPED.replace("    optimizer.zero_grad()\n", "").replace("    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", "")
    body = rewritten(text, tmp_path, contained=(PART,)).files["train_jax.py"]
    assert 'return jax.tree.map(jnp.add, grads, new["net"]), loss' in body
    assert "grads = zero_gradients(whole.net)" in body


def test_two_optimizers_of_one_module(tmp_path: Path) -> None:
    """Each updates its own parameters with its share of the gradients."""
    text = TRAIN.replace(
        "optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)",
        "optimizer = torch.optim.Adam(model.fc1.parameters(), lr=1e-2)\nother = torch.optim.SGD(model.fc2.parameters(), lr=1e-2)",
    )
    text = text.replace("    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n    other.zero_grad()\n")
    draft = rewritten(text.replace("    optimizer.step()\n", "    optimizer.step()\n    other.step()\n"), tmp_path)
    assert draft.holes == ()
    assert "    optimizer.update(model, grads)\n    other.update(model, grads)\n" in draft.files["train_jax.py"]
