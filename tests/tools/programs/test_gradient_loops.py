"""Loops that give each gradient a new value by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import libcst as cst
import numpy as np
import pytest
import torch

from migrate_agent.tools.programs.rewrite.passes.gradient_loops import gradient_loop, zeroed
from tests.tools.programs.scripts import TRAIN, rewritten

STATEMENTS = {
    "p.grad.data.clamp_(-1, 1)": "jnp.clip(g, -1, 1)",
    "p.grad.clamp_(min=-0.5, max=0.1)": "jnp.clip(g, -0.5, 0.1)",
    "p.grad.data.clamp_(max=0.2)": "jnp.clip(g, None, 0.2)",
    "p.grad.clip_(0.1)": "jnp.clip(g, 0.1, None)",
    "p.grad.mul_(0.5)": "g * 0.5",
    "p.grad.data *= 1.0 / 4 + 1": "g * (1.0 / 4 + 1)",
    "p.grad /= 3": "g / 3",
    "p.grad.div_(3)": "g / 3",
}
LOOPS = (
    "for p in model.parameters():\n    {}\n",
    "for p in model.parameters():\n    if p.grad is not None:\n        {}\n",
    "for n, p in model.named_parameters():\n    if p.requires_grad:\n        {}\n",
)


def loop(text: str) -> Any:
    """What is understood of a loop."""
    return gradient_loop(cst.parse_module(text).body[0])


@pytest.mark.parametrize("statement", STATEMENTS)
def test_each_gradient_gets_torchs_value(statement: str) -> None:
    values = np.random.default_rng(0).normal(size=7)
    parameter = torch.nn.Parameter(torch.zeros(7, dtype=torch.float64))
    parameter.grad = torch.from_numpy(values.copy())
    exec(statement, {"p": parameter})
    understood = loop(LOOPS[0].format(statement))
    assert understood.value == STATEMENTS[statement]
    with jax.enable_x64(True):
        scope: dict[str, Any] = {"jax": jax, "jnp": jnp, "grads": jnp.asarray(values)}
        exec(understood.line("grads"), scope)
    np.testing.assert_allclose(scope["grads"], parameter.grad.numpy(), rtol=1e-15)


@pytest.mark.parametrize("form", LOOPS)
def test_conditions_that_each_fulfils_say_nothing(form: str) -> None:
    understood = loop(form.format("p.grad.mul_(2)"))
    assert (understood.line("a"), cst.Module([]).code_for_node(understood.parameters)) == (
        "a = jax.tree.map(lambda g: g * 2, a)",
        "model.parameters()",
    )


@pytest.mark.parametrize(
    "text",
    [
        LOOPS[0].format("p.grad.mul_(p.grad)"),
        LOOPS[0].format("p.data.clamp_(-1, 1)"),
        LOOPS[0].format("p.grad.add_(noise)"),
        LOOPS[0].format("p.grad.mul_(2)\n    count += 1"),
        "for p in model.parameters():\n    if p.dim() > 1:\n        p.grad.mul_(2)\n",
        "for p in model.parameters():\n    p.grad.mul_(2)\nelse:\n    count = 1\n",
        "count = 1\n",
    ],
)
def test_other_loops_are_not_understood(text: str) -> None:
    assert loop(text) is None


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("for p in net.parameters():\n    p.grad = None\n", "net"),
        ("for p in self.net.parameters():\n    if p.grad is not None:\n        p.grad.data.zero_()\n", "self.net"),
        ("for g in opt.param_groups:\n    for p in g['params']:\n        p.grad.zero_()\n", "opt"),
        ("for p in net.parameters():\n    p.grad.mul_(2)\n", ""),
        ("for p in net.parameters():\n    p.grad = p.grad + 1\n", ""),
        ("for p in net.parameters():\n    p.grad = None\n    n += 1\n", ""),
        ("for p in parameters:\n    p.grad = None\n", ""),
    ],
)
def test_loops_that_set_gradients_to_zero(text: str, owner: str) -> None:
    assert zeroed(cst.parse_module(text).body[0]) == owner


@pytest.mark.ci
def test_what_sets_gradients_by_hand_is_a_step_or_a_hole(tmp_path: Path) -> None:
    zero = "    optimizer.zero_grad()\n"
    plain = rewritten(TRAIN.replace(zero, "    for p in model.parameters():\n        p.grad = None\n"), tmp_path / "plain")
    assert plain.files == rewritten(TRAIN, tmp_path / "same").files
    loop = "for step in range(6):\n"
    other = rewritten(TRAIN.replace(loop, loop + "    model.fc1.weight.grad = None\n"), tmp_path / "other")
    assert not other.files and "set by hand" in other.holes[0].reason


@pytest.mark.ci
def test_they_stand_in_the_step_in_order(tmp_path: Path) -> None:
    """Beside what clips all of them together."""
    changes = "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, norm_type=2)\n" + "".join(
        f"    {line}\n" for line in LOOPS[1].format("p.grad.data.clamp_(-limit, limit)").splitlines()
    )
    text = TRAIN.replace("    optimizer.step()\n", changes + "    optimizer.step()\n").replace("\nfor step", "limit = 0.1\n\nfor step", 1)
    draft = rewritten(text, tmp_path)
    assert draft.holes == ()
    assert (
        "    grads, _ = clip_grad_norm(grads, 1.0)\n    grads = jax.tree.map(lambda g: jnp.clip(g, -limit, limit), grads)\n"
        in draft.files["train_jax.py"]
    )
