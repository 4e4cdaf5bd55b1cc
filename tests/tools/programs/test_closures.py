"""Optimizers that call a closure: the loss and its gradients become one compiled function, which the closure gives."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from flax import nnx

from migrate_agent.tests.tools.programs.scripts import HEAD, body_of, rewritten
from migrate_agent.tools.programs.vendored.double_modules import to_double

CLOSURE = """
        def closure():
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            return loss

"""
SCRIPT = (
    HEAD
    + """
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)
for epoch in range(2):
    for x, y in zip(inputs.split(20), targets.split(20)):
"""
    + CLOSURE
    + """
        loss = optimizer.step(closure)
        print(epoch, f"{loss.item():.4f}")
"""
)
CALLED = "            return loss_and_grads(model, x, y)\n"
DOUBLE = (("optimizer = torch", "model.double()\noptimizer = torch"), ("model(x)", "model(x.double())"))
CASES = {
    "plain": ((), CALLED),
    "spoken": (
        (("            return loss\n", "            print(loss.item())\n            return loss\n"),),
        "            loss, grads = loss_and_grads(model, x, y)\n            print(loss.item())\n            return loss, grads\n",
    ),
    "asked": (
        (
            ("            optimizer.zero_grad()\n", "            if torch.is_grad_enabled():\n                optimizer.zero_grad()\n"),
            ("            loss.backward()\n", "            if loss.requires_grad:\n                loss.backward()\n"),
        ),
        CALLED,
    ),
    "clipped": (
        (
            (
                "            return loss\n",
                "            torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)\n            return loss\n",
            ),
        ),
        CALLED,
    ),
}


def edited(edits: tuple[tuple[str, str], ...]) -> str:
    """The script with edits."""
    text = SCRIPT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_closure_gives_loss_and_gradients(name: str, tmp_path: Path) -> None:
    """What loops around it bind is handed to the compiled function: as a constant of it, the first batch would stay."""
    edits, closure = CASES[name]
    body = body_of(rewritten(edited(edits), tmp_path))
    assert "optimizer = LBFGS(model, lr=0.5, max_iter=3)\n" in body
    assert "@nnx.jit\ndef loss_and_grads(model, x, y):\n" in body
    assert f"        def closure():\n{closure}" in body
    assert "        loss = optimizer.update(model, closure)\n" in body
    assert ("grads = clip_grad_value(grads, 0.01)" in body) == (name == "clipped")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("            optimizer.zero_grad()\n", "", "closure does not set gradients to zero"),
        ("            return loss\n", "            return loss * 2\n", "closure does more than compute a loss"),
    ],
)
def test_other_closures(old: str, new: str, reason: str, tmp_path: Path) -> None:
    draft = rewritten(edited(((old, new),)), tmp_path)
    assert [hole.reason.startswith(reason) for hole in draft.holes] == [True]


def test_a_module_in_double_precision(tmp_path: Path) -> None:
    """JAX has float64 from the first statement on."""
    draft = rewritten(edited(DOUBLE), tmp_path)
    lines = draft.files["train_jax.py"].splitlines()
    switch = lines.index('jax.config.update("jax_enable_x64", True)')
    assert all(not line or line.startswith(("import", "from", ")", " ")) for line in lines[:switch])
    assert "to_double(model)" in lines


def test_double_precision_is_in_place() -> None:
    with jax.enable_x64(True):
        module = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
        assert to_double(module) is module
        assert {value.get_value().dtype.name for _, value in nnx.iter_graph(module) if isinstance(value, nnx.Variable)} == {"float64"}
