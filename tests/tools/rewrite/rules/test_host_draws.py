"""Random numbers of Python and NumPy while a module is called: drawn by `jax.random`, or a hole that says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tools.types import Hole
from tests.tools.rewrite.snippets import snippet_workspace

HEAD = "import math\nimport random\nfrom random import random as draw\n\nimport numpy as np\nimport torch\nfrom torch import nn\n\n"


def rewrite(folder: Path, source: str) -> tuple[str, tuple[Hole, ...]]:
    """The rewritten statements, as they are before formatting, and the holes."""
    space = snippet_workspace(folder, source)
    return "".join(statement.text for statement in space.statements("snippet.py")), space.rewritten("snippet.py").holes


def module(*lines: str, before: str = "") -> str:
    """A module whose `forward(x)` has these lines."""
    body = "".join(f"        {line}\n" for line in lines)
    return f"{HEAD}{before}class M(nn.Module):\n    def forward(self, x: torch.Tensor, n: int, p: float, xs: list):\n{body}"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("return x * random.random()", "x * jax.random.uniform(self.rngs())"),
        ("return x * draw()", "x * jax.random.uniform(self.rngs())"),
        ("return x * random.gauss(0, 1)", "x * jax.random.normal(self.rngs())"),
        ("return x + random.normalvariate(1.0, p)", "x + (1.0 + p * jax.random.normal(self.rngs()))"),
        ("return x * random.expovariate(2)", "jax.random.exponential(self.rngs()) / 2"),
        ("return x * random.betavariate(p, p)", "x * jax.random.beta(self.rngs(), p, p)"),
        ("return x * np.random.uniform()", "x * jax.random.uniform(self.rngs())"),
        ("return x * np.random.uniform(0.5, high=p)", "jax.random.uniform(self.rngs(), minval=0.5, maxval=p)"),
        ("return x * np.random.uniform(size=3)", "jax.random.uniform(self.rngs(), (3,))"),
        ("return x + np.random.rand(n, 1)", "jax.random.uniform(self.rngs(), (n, 1))"),
        ("return x + np.random.randn(3)", "jax.random.normal(self.rngs(), (3,))"),
        ("return x + np.random.standard_normal(x.shape)", "jax.random.normal(self.rngs(), x.shape)"),
        ("return x + np.random.normal(0.0, 0.1, size=(n,))", "0.1 * jax.random.normal(self.rngs(), (n,))"),
        ("return x + np.random.exponential(p)", "p * jax.random.exponential(self.rngs())"),
        ("return x[np.random.randint(n)]", "x[jax.random.randint(self.rngs(), (), 0, n)]"),
        ("return x[np.random.randint(1, n, size=4)]", "x[jax.random.randint(self.rngs(), (4,), 1, n)]"),
        ("return x[random.randint(0, n - 1)]", "x[jax.random.randint(self.rngs(), (), 0, n)]"),
        ("return x[random.randint(0, 3)]", "x[jax.random.randint(self.rngs(), (), 0, 4)]"),
        ("return x[random.randrange(n)]", "x[jax.random.randint(self.rngs(), (), 0, n)]"),
        ("return x * random.choice([0.5, 2.0])", "jax.random.choice(self.rngs(), jnp.array([0.5, 2.0]))"),
        ("return x[random.sample(range(n), 2)]", "x[jax.random.choice(self.rngs(), n, (2,), replace=False)]"),
        (
            "a, b = sorted(random.sample(range(1, n), 2))",
            "a, b = jnp.sort(jax.random.choice(self.rngs(), jnp.arange(1, n), (2,), replace=False))",
        ),
        ("return x * random.choices([0.5, 2.0])", "x * jax.random.choice(self.rngs(), jnp.array([0.5, 2.0]), (1,))"),
        ("return x * np.random.choice(5, 2, replace=False)", "jax.random.choice(self.rngs(), 5, (2,), replace=False)"),
        ("return x * np.random.binomial(1, p)", "jax.random.bernoulli(self.rngs(), p, ()).astype(int)"),
        ("return x * math.sqrt(random.random())", "jnp.sqrt(jax.random.uniform(self.rngs()))"),
        ("return x[math.floor(random.random() * n)]", "x[jnp.floor(jax.random.uniform(self.rngs()) * n).astype(int)]"),
        ("return x * np.floor(np.random.rand() + p)", "jnp.floor(jax.random.uniform(self.rngs()) + p)"),
        ("return x * float(random.random())", "x * jax.random.uniform(self.rngs())"),
        ("return x if 0.2 < random.random() else -x", "jnp.where(0.2 < jax.random.uniform(self.rngs()), x, -x)"),
    ],
)
def test_a_draw(tmp_path: Path, line: str, text: str) -> None:
    result, holes = rewrite(tmp_path, module(line))
    assert not holes
    assert text in result


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["random.shuffle(xs)", "return x"], "`random.shuffle` draws on the host"),
        (["return x * np.random.binomial(3, 0.5)"], "more than one trial"),
        (["return x * np.random.uniform(xs, 1.0)"], "`low` may be an array"),
        (["return x * np.random.choice(3, p=xs)"], "with weights"),
        (["return x[random.choices(range(n), weights=xs)]"], "with weights"),
        (["return x if 'a' in random.sample(['a', 'b'], 1) else -x"], "no numbers"),
        (["return x if random.choice(['a', 'b']) == 'a' else -x"], "no numbers"),
        (["return x[: random.randint(1, 4)]"], "how large a part"),
        (["i = random.randint(0, 3)", "return x[i : 2 * i]"], "how large a part"),
        (["return x * xs[random.randint(0, 3)]"], "index of what is no array"),
        (["for _ in range(random.randint(1, 4)):", "    x = x * 2", "return x"], "how often a loop runs"),
        (["return x.repeat(random.randint(1, 4))"], "needs its value"),
    ],
)
def test_a_hole(tmp_path: Path, lines: list[str], reason: str) -> None:
    _, holes = rewrite(tmp_path, module(*lines))
    assert any(reason in hole.reason for hole in holes), holes


def test_numbers_are_followed_through_functions(tmp_path: Path) -> None:
    helper = (
        "def weights(alpha: float):\n    lam = np.random.beta(alpha, alpha)\n    return lam, 3\n\ndef mixes(lam):\n    return lam < 0.5\n\n"
    )
    source = module("lam, n = weights(p)", "if mixes(lam):", "    x = x * lam", "return x[:n]", before=helper)
    result, holes = rewrite(tmp_path, source)
    assert not holes
    assert "lam, n = weights(p, rngs=self.rngs)" in result
    assert "lax.cond(mixes(lam), if_true, if_false, x)" in result
    assert "return x[:n]" in result


def test_a_guard_of_python_stands_around_the_draw(tmp_path: Path) -> None:
    result, holes = rewrite(tmp_path, module("if self.training and random.random() < p:", "    x = -x", "return x"))
    assert not holes
    assert "if not self.deterministic:\n" in result
    assert "x = lax.cond(jax.random.uniform(self.rngs()) < p, if_true, if_false, x)" in result


def test_a_function_that_constructors_call_too_is_left(tmp_path: Path) -> None:
    source = (
        f"{HEAD}def order(n):\n    return np.random.permutation(n)\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.order = order(n)\n\n    def forward(self, x: torch.Tensor):\n        return x[order(3)]\n"
    )
    result, holes = rewrite(tmp_path, source)
    assert "return np.random.permutation(n)" in result
    assert any("constructors call too" in hole.reason for hole in holes)
