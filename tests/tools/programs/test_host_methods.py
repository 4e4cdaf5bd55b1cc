"""Methods of modules that act outside of them become functions of the script."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.passes.host_methods import HostMethods

HEAD = "import random\nimport torch\nfrom torch import nn\n\n\n"
NET = """class Net(nn.Module):
    def __init__(self, rate=0.1):
        super().__init__()
        self.fc = nn.Linear(2, 2)
{}
    def forward(self, x):
        return self.fc(x)
"""
PLAIN = NET.format("")
KEEPS = NET.format("        self.kept = []\n")
OWNS = NET.format("        self.opt = torch.optim.Adam(self.parameters(), lr=rate)\n")
ACT = "    def act(self, x):\n        return self.forward(x).argmax().item()\n"
PUT = "    def put(self, x):\n        self.kept.append(x)\n"
FIT = "    def fit(self, x, y=1):\n        loss = self.fc(x).sum()\n        self.opt.zero_grad()\n        loss.backward()\n        self.opt.step()\n"
ACTED = "def act(model, x):\n    return model(x).argmax().item()\n"
CASES = {
    "what fetches a number": (f"{PLAIN}{ACT}net = Net()\nprint(net.act(x))\n", f"{PLAIN}{ACTED}net = Net()\nprint(act(net, x))\n"),
    "what draws by Python": (
        f"{PLAIN}    def coin(self):\n        return random.random()\nnet = Net()\nnet.coin()\n",
        f"{PLAIN}def coin():\n    return random.random()\nnet = Net()\ncoin()\n",
    ),
    "what fills a list": (
        f"{KEEPS}{PUT}net = Net()\nnet.put(1)\n",
        f"from types import SimpleNamespace\n{PLAIN}def put(x, kept):\n    kept.kept.append(x)\nnet = Net()\nkept = SimpleNamespace(kept=[])\nput(1, kept)\n",
    ),
    "what calls a method that needs no module": (
        f"{KEEPS}{PUT}    def both(self, x):\n        self.put(x)\n        self.put(-x)\n        return random.random()\nnet = Net()\nnet.both(x=1)\n",
        f"from types import SimpleNamespace\n{PLAIN}def put(x, kept):\n    kept.kept.append(x)\n"
        "def both(x, kept):\n    put(x, kept)\n    put(-x, kept)\n    return random.random()\n"
        "net = Net()\nkept = SimpleNamespace(kept=[])\nboth(x=1, kept=kept)\n",
    ),
    "what calls such a method": (
        f"{PLAIN}{ACT}    def both(self, x):\n        return self.act(x), self.act(-x)\nnet = Net()\nnet.both(x)\n",
        f"{PLAIN}{ACTED}def both(model, x):\n    return act(model, x), act(model, -x)\nnet = Net()\nboth(net, x)\n",
    ),
    "an optimizer of its own": (
        f"{OWNS}{FIT}net = Net()\nnet.fit(x)\nnet.fit(x, y=2)\nprint(net.opt)\n",
        PLAIN
        + FIT.replace("    def fit(self, x, y", "def fit(model, x, opt, y")
        .replace("        ", "    ")
        .replace("self.opt", "opt")
        .replace("self.fc", "model.fc")
        + "net = Net()\nopt = torch.optim.Adam(net.parameters(), lr=0.1)\nfit(net, x, opt)\nfit(net, x, opt, y=2)\nprint(opt)\n",
    ),
    "its rate is an argument": (
        f"{OWNS}{FIT}def main():\n    net = Net(rate=0.3)\n    net.fit(x)\n",
        PLAIN
        + FIT.replace("    def fit(self, x, y", "def fit(model, x, opt, y")
        .replace("        ", "    ")
        .replace("self.opt", "opt")
        .replace("self.fc", "model.fc")
        + "def main():\n    net = Net(rate=0.3)\n    opt = torch.optim.Adam(net.parameters(), lr=0.3)\n    fit(net, x, opt)\n",
    ),
}
KEPT = {
    "tensor maths": f"{PLAIN}    def twice(self, x):\n        return 2 * self.fc(x)\nnet = Net()\nnet.twice(x)\n",
    "what the module is computed by": PLAIN.replace("self.fc(x)\n", "self.fc(x) * self.act(x)\n") + f"{ACT}net = Net()\nnet.act(x)\n",
    "a second method of that name": f"{PLAIN}{ACT}class Other:\n{ACT}net = Net()\nnet.act(x)\n",
    "a method that is handed on": f"{PLAIN}{ACT}net = Net()\nprint(net.act)\n",
    "a name of the script": f"{PLAIN}{ACT}net = Net()\nact = net.act(x)\n",
    "a base of another": f"{PLAIN}{ACT}class Other(Net):\n    pass\nOther().act(x)\n",
    "a decorated method": f"{PLAIN}    @torch.no_grad()\n{ACT}net = Net()\nnet.act(x)\n",
    "two modules with optimizers of their own": f"{OWNS}{FIT}one, two = Net(), Net()\none.fit(x)\n",
    "modules in a loop": f"{OWNS}{FIT}for i in range(2):\n    net = Net()\n    net.fit(x)\n",
    "an optimizer out of sight": f"{OWNS}{FIT}net = Net()\n\n\ndef train(other):\n    other.fit(x)\n",
    "an optimizer before the last layer": f"{OWNS.replace('rate)', 'rate)' + chr(10) + '        self.late = nn.Linear(2, 2)')}{FIT}net = Net()\nnet.fit(x)\n",
    "arguments of any number": f"{PLAIN}{ACT}net = Net()\nnet.act(*x)\n",
}


def functions(text: str) -> str:
    """The script after the pass, without empty lines."""
    module = cst.parse_module(HEAD + text)
    new = module.visit(HostMethods(module, Imports(module.code))).code
    return without(new.replace(HEAD, "", 1))


def without(text: str) -> str:
    """A text without empty lines."""
    return "".join(f"{line}\n" for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("label", CASES)
def test_methods_that_act_become_functions(label: str) -> None:
    before, after = CASES[label]
    assert functions(before) == without(after)


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert functions(KEPT[label]) == without(KEPT[label])
