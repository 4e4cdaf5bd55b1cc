"""Functions that construct an optimizer or a scheduler stand where they are called."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports, code
from migrate_agent.tools.programs.rewrite.passes.built_optimizers import BuiltOptimizers
from tests.tools.programs.scripts import TRAIN, rewritten

HEAD = "import torch.optim as optim\n"
CHOICE = (
    'def build(name, net, lr=1):\n    """An optimizer."""\n    if name == \'adam\':\n        return optim.Adam(net.parameters(), lr)\n'
    "    elif name == 'sgd':\n        rate = lr * 2\n        return optim.SGD(net.parameters(), lr=rate)\n    raise ValueError(name)\n"
)
CASES = {
    "one end": (
        "def build(net, lr):\n    ps = net.parameters()\n    optimizer = optim.Adam(ps, lr)\n    return optimizer\no = build(model, 0.1)\n",
        "ps = model.parameters()\no = optim.Adam(ps, 0.1)\n",
    ),
    "branches that leave": (
        CHOICE + "rate = 3\nself.o = build(args.opt, self.net, lr=cfg['lr'])\n",
        "rate = 3\nif args.opt == 'adam':\n    self.o = optim.Adam(self.net.parameters(), cfg['lr'])\nelif args.opt == 'sgd':\n"
        "    rate_built = cfg['lr'] * 2\n    self.o = optim.SGD(self.net.parameters(), lr=rate_built)\nelse:\n    raise ValueError(args.opt)\n",
    ),
    "a name that branches give": (
        "def build(args, net):\n    if args.a:\n        opt = optim.Adam(net.parameters())\n    else:\n        opt = optim.SGD(net.parameters(), lr=args.lr)\n"
        "    return opt\n# Why.\no = build(args, net)\n",
        "# Why.\nif args.a:\n    o = optim.Adam(net.parameters())\nelse:\n    o = optim.SGD(net.parameters(), lr=args.lr)\n",
    ),
    "a scheduler": (
        "def make(opt, n=3):\n    return optim.lr_scheduler.StepLR(opt, n)\ns = make(o)\n",
        "s = optim.lr_scheduler.StepLR(o, 3)\n",
    ),
}
KEPT = {
    "a function that gives two things": "def build(net):\n    return optim.Adam(net.parameters()), 1\no = f(build(net))\n",
    "a value that is computed": CHOICE + "o = build(name(), net)\n",
    "a parameter that gets another value": "def build(net):\n    net = net.module\n    return optim.Adam(net.parameters())\no = build(net)\n",
    "a loop that leaves": "def build(nets):\n    for net in nets:\n        return optim.Adam(net.parameters())\no = build(nets)\n",
    "a branch that goes on": "def build(net, a):\n    if a:\n        if a > 1:\n            return optim.Adam(net.parameters())\n"
    "    return optim.SGD(net.parameters())\no = build(net, a)\n",
    "another function": "def build(net):\n    return wrap(net)\no = build(net)\n",
}


def placed(text: str) -> str:
    """The script after the pass, where each call of `build` and `make` gave an optimizer."""
    module = cst.parse_module(HEAD + text)

    def kinds(node: cst.CSTNode) -> tuple[str, ...]:
        return ("object:torch.optim.Adam",) if code(node).startswith(("build(", "make(")) else ()

    return module.visit(BuiltOptimizers(module, Imports(module.code), kinds)).code.removeprefix(HEAD)


@pytest.mark.parametrize("label", CASES)
def test_what_the_function_does_stands_at_its_call(label: str) -> None:
    before, after = CASES[label]
    assert placed(before) == after


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert placed(KEPT[label]) == KEPT[label]


@pytest.mark.ci
def test_each_branch_has_its_optimizer(tmp_path: Path) -> None:
    made = CHOICE.replace("optim.", "torch.optim.") + "\noptimizer = build('adam', model, 1e-2)"
    draft = rewritten(TRAIN.replace("optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)", made), tmp_path)
    assert draft.holes == ()
    text = draft.files["train_jax.py"]
    assert "def build" not in text
    assert "optax.adam(1e-2" in text and "optax.sgd(" in text


@pytest.mark.ci
def test_a_module_for_several_devices_is_the_module(tmp_path: Path) -> None:
    text = TRAIN.replace("model = Net()\n", "model = nn.DataParallel(Net())\n") + "\ntorch.save(model.module.state_dict(), 'model.pt')\n"
    text = text.replace("logits.argmax(", "model(x).argmax(")
    draft = rewritten(text, tmp_path)
    assert draft.holes == ()
    assert "model = Net(rngs=" in draft.files["train_jax.py"]
    assert "eval_step(model, x)" in draft.files["train_jax.py"]
    assert "write_checkpoint(object_state(model), " in draft.files["train_jax.py"]
