"""Methods that are parts of a training step, and stand where they are called."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.parted_steps import PartedSteps

HEAD = "class Trainer:\n"
STEP = "    def step(self):\n        self.opt.zero_grad()\n        self.back()\n        self.opt.step()\n"
BACK = "    def back(self):\n        self.loss = self.net(self.x)\n        self.loss.backward()\n"
CASES = {
    "a method that goes backward": (
        f"{BACK}\n{STEP}",
        "    def step(self):\n        self.opt.zero_grad()\n        self.loss = self.net(self.x)\n        self.loss.backward()\n        self.opt.step()\n",
    ),
    "its docstring": (
        BACK.replace("(self):\n", '(self):\n        """Why."""\n') + f"\n{STEP}",
        "    def step(self):\n        self.opt.zero_grad()\n        self.loss = self.net(self.x)\n        self.loss.backward()\n        self.opt.step()\n",
    ),
    "what it is computed by, which others call too": (
        "    def forward(self):\n        self.y = self.net(self.x)\n"
        "    def test(self):\n        self.forward()\n"
        "    def back(self):\n        self.y.sum().backward()\n"
        + STEP.replace("        self.opt.zero", "        # Why.\n        self.forward()\n        self.opt.zero"),
        "    def forward(self):\n        self.y = self.net(self.x)\n"
        "    def test(self):\n        self.forward()\n"
        "    def step(self):\n        # Why.\n        self.y = self.net(self.x)\n        self.opt.zero_grad()\n        self.y.sum().backward()\n        self.opt.step()\n",
    ),
    "what nobody else calls": (
        "    def forward(self):\n        self.y = self.net(self.x)\n"
        "    def back(self):\n        self.y.sum().backward()\n"
        + STEP.replace("        self.opt.zero", "        self.forward()\n        self.opt.zero"),
        "    def step(self):\n        self.y = self.net(self.x)\n        self.opt.zero_grad()\n        self.y.sum().backward()\n        self.opt.step()\n",
    ),
    "two of them": (
        f"{BACK}{BACK.replace('back(', 'other(').replace('loss', 'cost')}"
        "    def step(self):\n        self.back()\n        self.a.step()\n        self.other()\n        self.b.step()\n",
        "    def step(self):\n        self.loss = self.net(self.x)\n        self.loss.backward()\n        self.a.step()\n"
        "        self.cost = self.net(self.x)\n        self.cost.backward()\n        self.b.step()\n",
    ),
}
KEPT = {
    "called twice": f"{BACK}{STEP}    def again(self):\n        self.back()\n",
    "handed on": f"{BACK}{STEP}    def again(self):\n        return self.back\n",
    "by its name": f"{BACK}{STEP}    def again(self):\n        getattr(self, 'back')()\n",
    "with an argument": f"{BACK}{STEP}".replace("back(self)", "back(self, x=1)"),
    "that gives something": f"{BACK}        return self.loss\n{STEP}",
    "whose value is used": f"{BACK}{STEP}".replace("        self.back()", "        x = self.back()"),
    "that steps by itself": f"{BACK}        self.opt.step()\n    def step(self):\n        self.back()\n",
    "where nothing steps": f"{BACK}    def again(self):\n        self.back()\n",
    "a name of the caller": f"{BACK}{STEP}".replace("self.loss", "loss").replace(
        "        self.opt.step()", "        self.opt.step()\n        print(loss)"
    ),
    "of a class that others are derived from": f"{BACK}{STEP}class Other(Trainer):\n    pass\n",
    "that a derived class has too": f"{BACK}{STEP}class Other:\n{BACK}",
    "what the loss does not need": f"    def log(self):\n        self.count = 1\n{STEP}".replace("self.back", "self.log"),
}


def plain(text: str) -> str:
    """The class after the pass."""
    module = cst.parse_module(HEAD + text)
    return module.visit(PartedSteps(module)).code


@pytest.mark.parametrize("label", CASES)
def test_statements_stand_where_the_method_was_called(label: str) -> None:
    before, after = CASES[label]
    assert [line for line in plain(before).splitlines() if line] == [line for line in (HEAD + after).splitlines() if line]


@pytest.mark.parametrize("label", KEPT)
def test_other_methods_stay(label: str) -> None:
    assert plain(KEPT[label]) == HEAD + KEPT[label]


def test_new_nodes_stand_for_those_of_the_method() -> None:
    module = cst.parse_module(HEAD + CASES["what it is computed by, which others call too"][0])
    change = PartedSteps(module)
    new = module.visit(change)
    old = {id(node) for node in _nodes(module)}
    names = [node for node in _nodes(new) if isinstance(node, cst.Name)]
    assert all(id(change.origin[node]) in old for node in names)
    assert len({id(node) for node in names}) == len(names)


def _nodes(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(one for child in node.children for one in _nodes(child))]
