"""What of torch is left in JAX source is found where it is certain, and nothing else is."""

from __future__ import annotations

import textwrap

import jax
import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from migrate_agent.tools.leftovers import find, kinds
from migrate_agent.tools.leftovers.idioms import ARRAY_ATTRIBUTES, TENSORS_ALONE, VARIABLE_ATTRIBUTES

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom flax import nnx\n\n\n"
IN_A_MODULE = "class M(nnx.Module):\n    def __init__(self, *, rngs):\n        self.w = nnx.Param(jnp.ones(3))\n        self.fc = nnx.Linear(3, 3, rngs=rngs)\n\n"

WRONG = (
    ("def f(x):\n    y = jnp.sin(x)\n    y[y < 0] = 0\n    return y\n", "writes into the array y"),
    ("def f(x):\n    y = jnp.sin(x)\n    y[0] += 1\n", "writes into the array y"),
    ("def f(x):\n    y = x * jnp.ones(3)\n    del y[0]\n", "writes into the array y"),
    ("def f(x):\n    y, z = jnp.split(x, 2)\n    y[0], z = 1, 2\n", "writes into the array y"),
    ("def f(x: jax.Array):\n    x[0] = 1\n", "writes into the array x"),
    ("def f(x):\n    for i in range(3):\n        x = jnp.sin(x)\n        x[i] = 1\n", "writes into the array x"),
    ("def f(x, a):\n    y = jnp.sin(x) if a else jnp.cos(x)\n    return y.unsqueeze(0)\n", "reads .unsqueeze of the array y"),
    ("def f(x):\n    return jnp.sin(x).reshape(3).masked_fill_(x > 0, 1)\n", ".masked_fill_"),
    ("def f(x):\n    return x.masked_fill(x > 0, 1)\n", "only torch's tensors have it"),
    ("def f(x):\n    y = jnp.sin(x)\n    return y.size(), y.shape[0]\n", "calls .size of the array y, which is no method"),
    ("def f(x):\n    y = jnp.sin(x)\n    return y.view(3, -1)\n", "hands a shape to .view"),
    ("def f(x):\n    y = jnp.sin(x)\n    return y.transpose(1, 2)\n", "hands two axes to .transpose"),
    ("def f(x):\n    y = jnp.sin(x)\n    return y.sum(dim=1)\n", "hands dim= to .sum"),
    ("def f(x):\n    return jnp.sum(x, dim=1)\n", "hands dim= to jax.numpy.sum"),
    ("def f(x):\n    y = jnp.sin(x)\n    y.requires_grad = True\n", "sets .requires_grad of the array y"),
    ("def f(x):\n    return relu(x)\n", "relu is not defined"),
    ("def f(x):\n    return torch.relu(x)\n", "torch is left"),
    ("from torch import nn\n", "imports torch"),
    (
        IN_A_MODULE + "    def __call__(self, x):\n        y = self.fc(x)\n        return y * y.sum().item()\n",
        "reads .item() of an array in __call__",
    ),
    (
        IN_A_MODULE + "    def __call__(self, x):\n        return self.g(x)\n\n    def g(self, x):\n        return int(self.fc(x)[0])\n",
        "int() of an array in g",
    ),
    (IN_A_MODULE + "    def sample(self, x):\n        y = self.w[...]\n        y[0] = 1\n", "writes into the array y"),
    (
        IN_A_MODULE
        + "    def __call__(self, x):\n        return self.fc(x), None\n\n    def sample(self, x):\n        y, _ = self(x)\n        y[0] = 1\n",
        "writes into the array y",
    ),
)

RIGHT = (
    "def f(x):\n    y = {}\n    y[0] = jnp.sin(x)\n    return y\n",
    "def f(x):\n    y = [jnp.sin(x)]\n    y[0] = 1\n    return y\n",
    "def f(x):\n    y = np.zeros(3)\n    y[0] = 1\n    y[1] += 2\n    return jnp.asarray(y)\n",
    "def f(x):\n    x[0] = 1\n    return x\n",
    "def f(x):\n    y = jnp.sin(x)\n    y = np.array(y)\n    y[0] = 1\n",
    "def f(x, a):\n    y = jnp.sin(x)\n    if a:\n        y = np.array(y)\n    y[0] = 1\n",
    "def f(x, a):\n    y = jnp.sin(x)\n    for i in range(3):\n        y[0] = 1\n        y = np.array(y)\n".replace(
        "        y[0] = 1\n", ""
    ),
    "def f(x: jax.Array | np.ndarray):\n    x[0] = 1\n",
    "def f(x: jax.Array):\n    if isinstance(x, np.ndarray):\n        x[0] = 1\n    return x\n",
    "def f(x: jax.Array):\n    x[...] = 1\n",
    "def f(x: jax.Array):\n    return x.value\n",
    "def f(ref):\n    ref[...] = jnp.sin(ref[...])\n    ref[0, :] = jnp.zeros(3)\n",
    "def f(x):\n    y = jnp.sin(x)\n    return y.at[0].set(1).view(jnp.int32), y.transpose(0, 1), y.transpose(2, 0, 1), y.size\n",
    "def f(x):\n    y = jnp.sin(x)\n    return [y.unsqueeze(0) for y in x]\n".replace("unsqueeze", "thing"),
    "class Rotation:\n    def unsqueeze(self, axis):\n        return self\n\n\ndef f(r):\n    return r.unsqueeze(0)\n",
    "def f(x, k):\n    return '%s' % jnp.sin(x)\n",
    "def f(x):\n    return jnp.where(x)[0]\n",
    "try:\n    tqdm\nexcept NameError:\n    tqdm = None\n",
    "def f(x: 'Unknown') -> 'int':\n    return x\n",
    IN_A_MODULE
    + "    def __call__(self, x):\n        return x\n\n    def sample(self, x):\n        return int(self.fc(x)[0]), self.fc(x).sum().item()\n",
    IN_A_MODULE + "    def __call__(self, x):\n        self.w[...] = jnp.sin(x)\n        return int(x.shape[0])\n",
    IN_A_MODULE
    + "    def sample(self, x):\n        y = self.g(x)\n        y[0] = 1\n\n    def g(self, x):\n        return np.asarray(self.fc(x))\n",
)


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_what_raises_an_error_is_found(text: str, expected: str) -> None:
    found = [str(leftover) for leftover in find({"a.py": HEAD + text})]
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize("text", RIGHT)
def test_right_code_is_left_alone(text: str) -> None:
    assert list(find({"a.py": HEAD + text})) == []


def test_what_another_file_returns_is_known() -> None:
    helper = HEAD + "def double(x):\n    return 2 * jnp.asarray(x)\n"
    text = "from .helpers import double\n\n\ndef f(x):\n    y = double(x)\n    y[0] = 1\n    return y\n"
    assert [str(one) for one in find({"p/helpers.py": helper, "p/a.py": text})] == [
        "p/a.py:6: writes into the array y: use `.at[…].set(…)`"
    ]


def test_a_subclass_may_give_something_else() -> None:
    text = textwrap.dedent("""
        class A(nnx.Module):
            def g(self, x):
                return jnp.sin(x)

            def f(self, x):
                y = self.g(x)
                y[0] = 1


        class B(A):
            def g(self, x):
                return np.sin(x)
        """)
    assert list(find({"a.py": HEAD + text})) == []


def test_a_text_that_does_not_parse_is_left() -> None:
    assert [str(one) for one in find({"a.py": "def f(:\n"})] == ["a.py:1: does not parse: invalid syntax"]


def test_the_tables_say_what_jax_has() -> None:
    array, variable = jnp.ones(3), nnx.Param(jnp.ones(3))
    attributes = {name for name in {*dir(array), *dir(jax.Array)} if not name.startswith("_")}
    assert attributes <= ARRAY_ATTRIBUTES
    assert {name for name in VARIABLE_ATTRIBUTES if name not in dir(variable)} == set()
    assert {name for name in kinds.ARRAYS_BY_NAME if not hasattr(jnp, name)} == set()
    assert {name for name in kinds.ARRAYS_IN_NN if not hasattr(jax.nn, name)} == set()
    assert {name for name in kinds.ARRAYS_IN_LAX if not hasattr(jax.lax, name)} == set()
    assert {name for name in kinds.ARRAYS_IN_RANDOM if not hasattr(jax.random, name)} == set()
    assert {name for name in kinds.LAYERS | kinds.VARIABLES if not hasattr(nnx, name)} == set()
    assert {name for name in TENSORS_ALONE if not hasattr(torch.Tensor, name)} == set()
    assert not TENSORS_ALONE & {*dir(array), *dir(variable)}
