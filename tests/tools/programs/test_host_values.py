"""What a step hands to Python in its middle is computed before it."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.passes.host_values import HostValues
from tests.tools.programs.scripts import TRAIN, rewritten

STEP = "for x in xs:\n    t = r + m.v(x)\n{}    loss = (a * (m.v(x) - t)).mean()\n    loss.backward()\n"
CASES = {
    "what both need": (
        STEP.format("    d = t - m.v(x)\n    d = d.detach().numpy()\n    a = torch.tensor(d)\n"),
        STEP.format("    t_values = r + m.v(x)\n    d = t_values - m.v(x)\n    d = d.detach().numpy()\n    a = torch.tensor(d)\n"),
    ),
    "what the loss needs itself": (
        STEP.format("    a = torch.tensor(t.tolist())\n    n = t.numpy()\n"),
        STEP.format("    t_values = r + m.v(x)\n    a = torch.tensor(t.tolist())\n    n = t_values.numpy()\n"),
    ),
    "a loop that lists numbers": (
        STEP.format(
            "    q = t[-1]\n    a = []\n    for i in y:\n        q = r[i] + t[i] * q\n        a.append(q.item())\n    a.reverse()\n    q = torch.tensor(a)\n"
        ).replace("(a *", "(q *"),
        STEP.format("")
        .replace(
            "    loss",
            "    t_values = r + m.v(x)\n    q = t_values[-1]\n    a = []\n    for i in y:\n        q = r[i] + t_values[i] * q\n        a.append(q.item())\n"
            "    a.reverse()\n    q = torch.tensor(a)\n    loss",
            1,
        )
        .replace("(a *", "(q *"),
    ),
}
KEPT = {
    "data": STEP.format("    a = x + 1\n    a = a.numpy()\n"),
    "what Python alone needs": STEP.format("    d = m.v(x)\n    a = d.numpy()\n"),
    "after the step": STEP.format("    a = 1\n") + "    n = t.numpy()\n",
    "a loop whose values are read": STEP.format("    a = []\n    for i in y:\n        q = t[i]\n        a.append(q.item())\n").replace(
        "(a *", "(q *"
    ),
    "a memory that draws": "class M(object):\n    def sample(self, n):\n        return random.sample(self.rows, n)\n"
    + STEP.format("    a = 1\n"),
    "layers of another file": "from net import Net\n" + CASES["what both need"][0],
    "layers that draw by themselves": "class N(nn.Module):\n    def v(self, x):\n        return x + torch.randn(2)\n"
    + CASES["what both need"][0],
    "layers that draw": "net = nn.Dropout(0.1)\n" + CASES["what both need"][0],
}


def before(text: str) -> str:
    """The script after the pass."""
    module = cst.parse_module(text)
    return module.visit(HostValues(module, frozenset("m"))).code


@pytest.mark.parametrize("label", CASES)
def test_it_is_computed_once_more(label: str) -> None:
    old, new = CASES[label]
    assert before(old) == new


@pytest.mark.parametrize("label", KEPT)
def test_others_stay(label: str) -> None:
    assert before(KEPT[label]) == KEPT[label]


def test_python_computes_before_the_step(tmp_path: Path) -> None:
    """The loss is handed what Python made of it."""
    loss = "    loss = F.cross_entropy(logits, y)\n"
    weighted = (
        "    rows = logits.detach().numpy()\n    weight = torch.tensor([float(row.max()) for row in rows])\n"
        "    loss = (weight * F.cross_entropy(logits, y, reduction='none')).mean()\n"
    )
    drawing = TRAIN.replace("self.fc2(F", "F.dropout(self.fc2(F").replace("self.fc1(x)))", "self.fc1(x))), 0.1)")
    (hole,) = rewritten(drawing.replace(loss, weighted), tmp_path / "drawing").holes
    assert "needs what is computed between backward() and the step" in hole.reason
    draft = rewritten(TRAIN.replace(loss, weighted), tmp_path / "plain")
    assert draft.holes == ()
    text = draft.files["train_jax.py"]
    assert "def loss_fn(model, x, weight, y):\n    logits = model(x)\n    loss = " in text
    assert text.index("rows = np.asarray(logits_values)") < text.rindex("train_step(model, optimizer, x, weight, y)")
