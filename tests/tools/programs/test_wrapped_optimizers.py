"""Optimizers inside of objects that set their rates."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.passes.wrapped_optimizers import WrappedOptimizers
from tests.tools.programs.scripts import TRAIN, rewritten

HEAD = "import torch\n"
CLASS = (
    "class Warmup(object):\n    def __init__(self, scale, optimizer):\n        self.scale, self.optimizer = scale, optimizer\n        self.count = 0\n"
    "    def zero(self):\n        self.optimizer.zero_grad()\n"
    "    def step(self):\n        self.count += 1\n        for group in self.optimizer.param_groups:\n            group['lr'] = self.scale * self.count\n"
    "        self.optimizer.step()\n"
)
WITHOUT = CLASS.replace("        self.optimizer.step()\n", "").replace("    def zero(self):\n        self.optimizer.zero_grad()\n", "")
CASES = {
    "one that it constructs": (
        CLASS
        + "w = Warmup(2, torch.optim.Adam(net.parameters()))\nfor x in y:\n    w.zero()\n    f(x).backward()\n    # Now.\n    w.step()\n",
        WITHOUT
        + "w_optimizer = torch.optim.Adam(net.parameters())\nw = Warmup(2, w_optimizer)\nfor x in y:\n    w_optimizer.zero_grad()\n    f(x).backward()\n"
        "    # Now.\n    w.step()\n    w_optimizer.step()\n",
    ),
    "one with a name": (
        CLASS + "opt = torch.optim.Adam(net.parameters())\nw = Warmup(2, optimizer=opt)\nw.optimizer.zero_grad()\nw.step()\n",
        WITHOUT + "opt = torch.optim.Adam(net.parameters())\nw = Warmup(2, optimizer=opt)\nopt.zero_grad()\nw.step()\nopt.step()\n",
    ),
    "handed to a function": (
        CLASS + "def train(net, w):\n    w.step()\nopt = torch.optim.Adam(net.parameters())\nw = Warmup(2, opt)\ntrain(net, w)\n",
        WITHOUT
        + "def train(net, w):\n    opt = w.optimizer\n    w.step()\n    opt.step()\nopt = torch.optim.Adam(net.parameters())\nw = Warmup(2, opt)\n"
        "train(net, w)\n",
    ),
}
KEPT = {
    "a step in the middle": CLASS + "        self.done = True\nw = Warmup(2, torch.optim.Adam(net.parameters()))\nw.step()\n",
    "two objects": CLASS + "w = Warmup(2, opt)\nv = Warmup(3, other)\nw.step()\n",
    "a class with a base": CLASS.replace("object", "Base") + "w = Warmup(2, opt)\nw.step()\n",
    "a step that gives something": CLASS.replace("        self.count += 1\n", "        if self.count:\n            return 1\n")
    + "w = Warmup(2, opt)\nw.step()\n",
}


def apart(text: str) -> str:
    """The script after the pass."""
    module = cst.parse_module(HEAD + text)
    return module.visit(WrappedOptimizers(module, Imports(module.code))).code.removeprefix(HEAD)


@pytest.mark.parametrize("label", CASES)
def test_the_step_stands_where_the_object_is_called(label: str) -> None:
    before, after = CASES[label]
    assert apart(before) == after


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert apart(KEPT[label]) == KEPT[label]


@pytest.mark.ci
def test_the_object_sets_the_rate(tmp_path: Path) -> None:
    text = TRAIN.replace("optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)", "")
    text = text.replace("\nfor step", CLASS + "\nwarmup = Warmup(1e-3, torch.optim.Adam(model.parameters(), lr=0))\n\nfor step", 1)
    draft = rewritten(
        text.replace("    optimizer.zero_grad()", "    warmup.zero()").replace("    optimizer.step()", "    warmup.step()"), tmp_path
    )
    assert draft.holes == ()
    mirror = draft.files["train_jax.py"]
    assert "set_hyperparameter(self.optimizer, self.scale * self.count)" in mirror
    assert "inject_hyperparams" in mirror
