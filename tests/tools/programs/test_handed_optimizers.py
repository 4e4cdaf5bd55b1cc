"""Training functions that are handed a module and its optimizer under names of their own."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError, find_cores
from migrate_agent.tools.programs.rewrite.names import Imports
from tests.tools.programs.scripts import HEAD, rewritten

TRAIN = (
    HEAD
    + """

def fit(net, opt, index):
    x, y = inputs[index], targets[index]
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


def main():
    model = Net()
    index = "none yet"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        print(index, fit(model, optimizer, torch.randint(0, 40, (8,))))
        index = step


main()
"""
)
STEP = "for x in xs:\n        opt.zero_grad()\n        loss = {}(x)\n        loss.backward()\n        opt.step()\n"


@pytest.mark.parametrize("name", ["opt", "optimizer"])
def test_other_names_for_the_same_things(name: str, tmp_path: Path) -> None:
    """Also where the function's names mean other things elsewhere."""
    draft = rewritten(TRAIN.replace("opt.", f"{name}.").replace("net, opt,", f"net, {name},"), tmp_path)
    assert draft.holes == ()
    text = draft.files["train_jax.py"]
    assert f"def train_step(net, {name}, x, y):\n" in text
    assert f"    loss = train_step(net, {name}, x, y)\n" in text
    assert "optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)" in text


def test_an_optimizer_in_sight_keeps_its_module() -> None:
    """The loss of another module is none of its own."""
    text = f"def fit(other, opt, xs):\n    {STEP.format('other')}"
    cores, _ = find_cores(cst.parse_module(text), Imports(text), frozenset({"model", "other"}), {"opt": "model"})
    assert cores[0].owners == ["other"]
    text = f"def fit(other, xs):\n    {STEP.format('other')}"
    with pytest.raises(NotUnderstoodError, match="no module of this loss is the one that the optimizer has"):
        find_cores(cst.parse_module(text), Imports(text), frozenset({"model", "other"}), {"opt": "model"})
