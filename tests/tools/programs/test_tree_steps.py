"""Compiled steps that take modules as trees, and the programs whose steps keep graphs."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from migrate_agent.tools.programs.rewrite.drafts.tree_steps import ALIASES, late_attributes, with_tree_steps
from migrate_agent.tools.types import Draft
from tests.tools.programs.scripts import rewritten

DECORATORS = [
    ("@nnx.jit", "@nnx.jit(graph=False)"),
    ('@nnx.jit(donate_argnames=("model", "optimizer"))', "@nnx.jit(graph=False, donate_argnums=(0, 1))"),
    ('@nnx.jit(donate_argnames=("optimizer",))', "@nnx.jit(graph=False, donate_argnums=1)"),
    (
        '@nnx.jit(donate_argnames=("model", "optimizer"), static_argnames=("train",))',
        '@nnx.jit(graph=False, donate_argnums=(0, 1), static_argnames=("train",))',
    ),
    ("@nnx.jit(graph=True)", "@nnx.jit(graph=True)"),
    ("@jax.jit", "@jax.jit"),
]
FUNCTION = "def train_step(model, optimizer, x, train):\n    return model(x)\n"

CLASSES = [
    ("class A(nnx.Module):\n    def __init__(self):\n        self.x = 1\n    def __call__(self, x):\n        return x\n", []),
    ("class A(nnx.Module):\n    def __init__(self):\n        self.x = 1\n    def __call__(self, x):\n        self.x = x\n", [("A", "x")]),
    ("class A(nnx.Module):\n    def __init__(self):\n        self.build()\n    def build(self):\n        self.x = 1\n", []),
    (
        "class A(nnx.Module):\n    def __init__(self):\n        self.build()\n    def build(self):\n        self.x = 1\n"
        "    def __call__(self, x):\n        self.build()\n",
        [("A", "x")],
    ),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        self.n[...] += 1\n", []),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        self.n += 1\n", [("A", "n")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        self.part.last = x\n", [("A", "last")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        setattr(self, 'last', x)\n", [("A", "'last'")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        setattr(*self.pair)\n", [("A", "any")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        self.__dict__['last'] = x\n", [("A", "any")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        vars(self)['last'] = x\n", [("A", "any")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        self.losses.append(x)\n", [("A", "losses")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        self.cache['last'] = x\n", [("A", "cache")]),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        rows = []\n        rows.append(x)\n", []),
    ("class A(nnx.Module):\n    def __call__(self, x):\n        self.n[0] = x\n        self.n[:, 1] = x\n", []),
    ("class A(nnx.Module):\n    pass\nclass B(A):\n    def keep(self, x):\n        self.x = x\n", [("B", "x")]),
    (
        "class A(nnx.Module):\n    @staticmethod\n    def defaults():\n        config = Config()\n        config.width = 3\n        return config\n",
        [],
    ),
    ("class A(nnx.Module):\n    @staticmethod\n    def keep(model, x):\n        model.x = x\n", [("A", "x")]),
    ("class Trainer:\n    def step(self, x):\n        self.x = x\n", []),
]


@pytest.mark.parametrize(("graph", "tree"), DECORATORS)
def test_decorators(graph: str, tree: str) -> None:
    draft = with_tree_steps(Draft({"train_jax.py": f"{graph}\n{FUNCTION}"}))
    assert draft.files["train_jax.py"].partition("\ndef")[0] == tree


@pytest.mark.parametrize(("text", "expected"), CLASSES)
def test_attributes_that_calls_assign(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(late_attributes([ast.parse(text)])) == expected


def test_a_program_that_keeps_an_attribute_keeps_graphs() -> None:
    files = {"model_jax.py": CLASSES[1][0], "train_jax.py": f"@nnx.jit\n{FUNCTION}"}
    assert with_tree_steps(Draft(files)).files == files


SCRIPT = """import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x, target = torch.randn(5, 3), torch.randn(5, 1)
    optimizer.zero_grad()
    loss = ((model(x) - target) ** 2).mean()
    loss.backward()
    optimizer.step()
"""


def test_a_script(tmp_path: Path) -> None:
    draft = with_tree_steps(rewritten(SCRIPT, tmp_path))
    assert "@nnx.jit(graph=False, donate_argnums=(0, 1))\ndef train_step(model, optimizer, x, target):" in draft.files["train_jax.py"]


class _Model(nnx.Module):
    def __init__(self, tied: bool) -> None:
        rngs = nnx.Rngs(0)
        self.a, self.b = nnx.Linear(4, 4, rngs=rngs), nnx.Linear(4, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        if tied:
            self.b.kernel = self.a.kernel

    def __call__(self, x: Any) -> Any:
        return self.norm(self.b(self.a(x)))


def _trained(graph: bool, tied: bool) -> tuple[float, np.ndarray]:
    """The last loss of three steps, and a running mean, with a module in evaluation mode between them."""
    model = _Model(tied)
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    def step(model: _Model, optimizer: nnx.Optimizer[_Model], x: Any) -> Any:
        loss, grads = nnx.value_and_grad(lambda model: (model(x) ** 2).sum())(model)
        optimizer.update(model, grads)
        return loss

    compiled = nnx.jit(step) if graph else nnx.jit(step, graph=False, donate_argnums=(0, 1))
    for deterministic in (False, True, False):
        model.set_attributes(use_running_average=deterministic)
        loss = compiled(model, optimizer, jnp.arange(8.0).reshape(2, 4))
    return float(loss), np.asarray(model.norm.mean[...])


def test_trees_and_graphs_train_alike() -> None:
    tree, graph = (_trained(graph, tied=False) for graph in (False, True))
    assert tree[0] == pytest.approx(graph[0])
    np.testing.assert_allclose(tree[1], graph[1])


def test_a_variable_at_two_places_is_an_error() -> None:
    """So that a program with tied weights is judged once more, with its graphs."""
    with pytest.raises(ValueError, match=f"^{ALIASES}"):
        _trained(graph=False, tied=True)
