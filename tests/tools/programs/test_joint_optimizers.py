"""Optimizers over several modules become one for each of them."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
import torch

from migrate_agent.tools.programs.judge.original import roots_of
from migrate_agent.tools.programs.rewrite.core import NotUnderstoodError, find_cores
from migrate_agent.tools.programs.rewrite.names import Imports
from migrate_agent.tools.programs.rewrite.passes.joint_optimizers import JointOptimizers
from tests.tools.programs.scripts import TRAIN, rewritten

HEAD = "import torch\nimport itertools\n"
MADE = "opt = torch.optim.Adam(itertools.chain(a.parameters(), b.parameters()), lr=r)\n"
OWN = "a_opt = torch.optim.Adam(a.parameters(), lr=r)\nb_opt = torch.optim.Adam(b.parameters(), lr=r)\n"
CASES = {
    "a chain": (MADE, OWN),
    "lists": (MADE.replace("itertools.chain(a.parameters(), b.parameters())", "list(a.parameters()) + list(b.parameters())"), OWN),
    "stars": (MADE.replace("itertools.chain(a.parameters(), b.parameters())", "[*a.parameters(), *b.parameters()]"), OWN),
    "a list with a name": (
        "ps = list(a.parameters()) + list(b.parameters())\n" + MADE.replace("itertools.chain(a.parameters(), b.parameters())", "ps"),
        OWN,
    ),
    "attributes": (
        "class T:\n    def __init__(self):\n        self.opt = torch.optim.Adam([*self.a.parameters(), *self.b.parameters()])\n",
        "class T:\n    def __init__(self):\n        self.a_opt = torch.optim.Adam(self.a.parameters())\n"
        "        self.b_opt = torch.optim.Adam(self.b.parameters())\n",
    ),
    "groups with options": (
        'opt = torch.optim.SGD([{"params": a.parameters()}, {"params": b.parameters(), "lr": 2}], lr=1, momentum=m)\n',
        "a_opt = torch.optim.SGD(a.parameters(), lr=1, momentum=m)\nb_opt = torch.optim.SGD(b.parameters(), momentum=m, lr=2)\n",
    ),
    "parts of a module": (
        "opt = torch.optim.SGD(list(a.parameters()) + list(b.x.parameters()) + list(b.y.parameters()), lr=1)\n",
        'a_opt = torch.optim.SGD(a.parameters(), lr=1)\nb_opt = torch.optim.SGD([{"params": b.x.parameters()}, {"params": b.y.parameters()}], lr=1)\n',
    ),
    "its step and zeros": (
        f"{MADE}for x in y:\n    # Anew.\n    opt.zero_grad()\n    opt.step()\n",
        f"{OWN}for x in y:\n    # Anew.\n    a_opt.zero_grad()\n    b_opt.zero_grad()\n    a_opt.step()\n    b_opt.step()\n",
    ),
    "its rate": (
        f"{MADE}for g in opt.param_groups:\n    g['lr'] = 2\nprint(opt.param_groups[0]['lr'])\n",
        f"{OWN}for g in a_opt.param_groups:\n    g['lr'] = 2\nfor g in b_opt.param_groups:\n    g['lr'] = 2\nprint(a_opt.param_groups[0]['lr'])\n",
    ),
    "an iterator with a name": ("ps = itertools.chain(a.parameters(), b.parameters())\nopt = torch.optim.Adam(ps, lr=r)\n", OWN),
    "a list of one module's": (
        "ps = [p for p in a.parameters() if p.requires_grad]\nopt = torch.optim.Adam(ps)\ntorch.nn.utils.clip_grad_norm_(ps, 1)\n",
        "opt = torch.optim.Adam([p for p in a.parameters() if p.requires_grad])\n"
        "torch.nn.utils.clip_grad_norm_([p for p in a.parameters() if p.requires_grad], 1)\n",
    ),
    "an iterator of one module's": ("ps = a.parameters()\nopt = torch.optim.Adam(ps)\n", "opt = torch.optim.Adam(a.parameters())\n"),
    "its state": (
        f'{MADE}torch.save({{"opt": opt.state_dict()}}, f)\nopt.load_state_dict(kept["opt"])\n',
        f'{OWN}torch.save({{"opt": {{"a_opt": a_opt.state_dict(), "b_opt": b_opt.state_dict()}}}}, f)\n'
        'a_opt.load_state_dict(kept["opt"]["a_opt"])\nb_opt.load_state_dict(kept["opt"]["b_opt"])\n',
    ),
    "its schedule": (
        f"{MADE}s = torch.optim.lr_scheduler.StepLR(opt, 3)\ns.step()\n",
        f"{OWN}a_s = torch.optim.lr_scheduler.StepLR(a_opt, 3)\nb_s = torch.optim.lr_scheduler.StepLR(b_opt, 3)\na_s.step()\nb_s.step()\n",
    ),
    "in two branches": (
        "if x:\n" + "".join(f"    {MADE}") + "else:\n    " + MADE.replace("Adam", "SGD"),
        "if x:\n"
        + "".join(f"    {line}\n" for line in OWN.splitlines())
        + "else:\n"
        + "".join(f"    {line}\n" for line in OWN.replace("Adam", "SGD").splitlines()),
    ),
}
KEPT = {
    "of one module": MADE.replace(", b.parameters()", ""),
    "a state that is not kept": f"{MADE}opt.load_state_dict(torch.load(f))\n",
    "a list that is used for more": "ps = list(a.parameters())\nopt = torch.optim.Adam(ps)\nprint(len(ps))\n",
    "handed on": f"{MADE}train(opt)\n",
    "another group's rate": f"{MADE}print(opt.param_groups[1]['lr'])\n",
    "a step with a closure": f"{MADE}opt.step(closure)\n",
    "whose updates depend on all": MADE.replace("Adam", "LBFGS"),
    "parameters of another form": MADE.replace("b.parameters()", "[scale]"),
    "other modules in another branch": f"{MADE}{MADE.replace('b.par', 'c.par')}",
    "a schedule that says its rate": f"{MADE}s = torch.optim.lr_scheduler.StepLR(opt, 3)\nprint(s.get_last_lr())\n",
    "a parameter of that name": f"{MADE}def f(opt):\n    opt.step()\n",
    "a condition on it": f"{MADE}if opt:\n    opt.step()\n",
    "a loop over its groups": f"{MADE}for g in opt.param_groups:\n    print(g)\n",
}


def split(text: str) -> str:
    """The script after the pass."""
    module = cst.parse_module(HEAD + text)
    return module.visit(JointOptimizers(module, Imports(module.code))).code.removeprefix(HEAD)


@pytest.mark.parametrize("label", CASES)
def test_each_module_gets_its_own(label: str) -> None:
    before, after = CASES[label]
    assert split(before) == after


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert split(KEPT[label]) == KEPT[label]


def test_an_iterator_with_a_name_is_empty_after_its_first_use() -> None:
    for parameters in (
        "itertools.chain(a.parameters(), b.parameters())",
        "a.parameters()",
        "(p for p in a.parameters() if p.requires_grad)",
    ):
        text = f"ps = {parameters}\nopt = torch.optim.Adam(ps)\ntorch.nn.utils.clip_grad_norm_(ps, 1)\n"
        assert split(text) == text


def test_new_nodes_stand_for_old_ones() -> None:
    module = cst.parse_module(HEAD + CASES["its rate"][0])
    change = JointOptimizers(module, Imports(module.code))
    new = module.visit(change)
    old = {id(node) for node in _nodes(module)}
    nodes = [node for node in _nodes(new) if isinstance(node, (cst.For, cst.Arg, cst.Call, cst.Name))]
    assert all(id(change.origin[node]) in old for node in nodes if isinstance(node, cst.For))
    assert len({id(node) for node in nodes}) == len(nodes)


def _nodes(node: cst.CSTNode) -> list[cst.CSTNode]:
    return [node, *(one for child in node.children for one in _nodes(child))]


def test_the_judge_tells_the_modules_of_an_optimizer() -> None:
    """By the first parameter of each; where a parameter is of no module, nothing is told."""
    one, other, part = torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)), torch.ones(2)
    assert roots_of([*one.parameters()]) == [one]
    assert roots_of([*other[1].parameters(), *one.parameters(), *other[0].parameters()]) == [other, one]
    assert roots_of([*one.parameters(), part]) == [None]


def test_gradients_that_nothing_sets_to_zero_are_refused() -> None:
    """Torch adds those of all steps up, of two optimizers as of one."""
    text = "for x in xs:\n    p.zero_grad()\n    loss = a(x) + b(x)\n    loss.backward()\n    p.step()\n    q.step()\n"
    module, owners = cst.parse_module(text), {"p": "a", "q": "b"}
    with pytest.raises(NotUnderstoodError, match="gradients of q are set to zero nowhere"):
        find_cores(module, Imports(text), frozenset("ab"), owners)
    module = cst.parse_module(text.replace("p.zero_grad()", "p.zero_grad(); q.zero_grad()").replace("; ", "\n    "))
    assert find_cores(module, Imports(text), frozenset("ab"), owners)[0][0].optimizers == ["p", "q"]


def test_norms_of_several_modules_are_one(tmp_path: Path) -> None:
    text = TRAIN.replace("model = Net()", "model, head = Net(), nn.Linear(3, 3)").replace("logits = model(x)", "logits = head(model(x))")
    text = text.replace("model.parameters(), lr", "[*model.parameters(), *head.parameters()], lr")
    text = text.replace(
        "    optimizer.step()\n",
        "    norm = nn.utils.clip_grad_norm_([*model.parameters(), *head.parameters()], 1.0)\n    optimizer.step()\n    print(norm)\n",
    )
    draft = rewritten(text, tmp_path)
    assert draft.holes == ()
    assert "    (model_grads, head_grads), norm = clip_grad_norm((model_grads, head_grads), 1.0)\n" in draft.files["train_jax.py"]
