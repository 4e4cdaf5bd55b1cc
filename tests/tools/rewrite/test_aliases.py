"""Writes through names that share memory: passed on where that is exact, left open where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.tests.tools.rewrite.snippets import rewrite_snippet, tidy

OPEN = {
    "a view of the view": "def f(x: torch.Tensor):\n    y = x\n    y = y.view(-1)\n    y[0] = 1\n    return x\n",
    "another view in each turn": "def f(x: torch.Tensor):\n    y = x\n    for _ in range(2):\n        y = y.view(-1, 2)\n        y[0] = 1\n"
    "        y = y[:, 1]\n    return x\n",
    "a view that the last turn made": "def f(x: torch.Tensor):\n    y = x.clone()\n    for i in range(2):\n        y[0] = i\n        y = x[:, 1:]\n"
    "    return x\n",
    "a helper that changes another view": "def g(x: torch.Tensor):\n    x = x.view(-1)\n    x[0] = 1\n\n"
    "def f(x: torch.Tensor):\n    g(x)\n    return x\n",
}
PASSED_ON = {
    "a view made anew after the write": (
        "def f(x: torch.Tensor):\n    y = x.view(-1)\n    y[0] = 1\n    y = y.view(2, -1)\n    return x, y\n",
        "def f(x: jax.Array):\n    y = x.reshape(-1)\n    y = y.at[0].set(1)\n    x = y.reshape(x.shape)\n    y = y.reshape(2, -1)\n    return x, y\n",
    ),
    "a helper that changes a view": (
        "def g(x: torch.Tensor):\n    y = x.view(-1)\n    y[0] = 1\n\ndef f(x: torch.Tensor):\n    g(x)\n    return x\n",
        "def g(x: jax.Array):\n    y = x.reshape(-1)\n    y = y.at[0].set(1)\n    x = y.reshape(x.shape)\n    return x\n\n\n"
        "def f(x: jax.Array):\n    x = g(x)\n    return x\n",
    ),
    "a helper that changes a part": (
        "def g(x: torch.Tensor):\n    x[:, 0].add_(1)\n\ndef f(x: torch.Tensor):\n    g(x)\n    return x\n",
        "def g(x: jax.Array):\n    x = x.at[:, 0].set(x[:, 0] + 1)\n    return x\n\n\ndef f(x: jax.Array):\n    x = g(x)\n    return x\n",
    ),
}


@pytest.mark.parametrize("source", OPEN.values(), ids=OPEN)
def test_left_open(source: str, tmp_path: Path) -> None:
    _, holes = rewrite_snippet(tmp_path, f"import torch\n\n{source}")
    assert {hole.code for hole in holes} == {"alias-write"}


@pytest.mark.parametrize(("before", "after"), PASSED_ON.values(), ids=PASSED_ON)
def test_passed_on(before: str, after: str, tmp_path: Path) -> None:
    text, holes = rewrite_snippet(tmp_path, f"import torch\n\n{before}")
    assert not holes
    assert text == tidy(after)
