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
    "what a list holds": "def f(x: torch.Tensor):\n    y = x * 2\n    found = []\n    found.append(y)\n    y.mul_(2)\n    return found\n",
    "what a list that is written out holds": "def f(x: torch.Tensor):\n    y = x * 2\n    found = [x, y]\n    y += 2\n    return found\n",
    "what a dictionary holds": "def f(x: torch.Tensor):\n    y, found = x * 2, {}\n    found['y'] = y\n    y[0] = 2\n    return found\n",
    "what a tuple holds": "def f(x: torch.Tensor):\n    y = x * 2\n    found = y, x\n    y[0] = 2\n    return found\n",
    "what an attribute holds": "def f(o, x: torch.Tensor):\n    y = x * 2\n    o.kept = y\n    y.relu_()\n    return x\n",
    "what the last turn put into a list": "def f(x: torch.Tensor):\n    h, found = x * 2, []\n    for _ in range(3):\n        h += x\n"
    "        found.append(h)\n    return found\n",
    "a part that a loop leaves behind": "def f(x: torch.Tensor):\n    y = torch.zeros_like(x)\n    for row in y:\n        row += 1\n"
    "        if len(row) > 2:\n            break\n    return y\n",
    "a part of what has another name": "def f(x: torch.Tensor):\n    y = torch.zeros_like(x)\n    z = y.view(-1)\n    for row in y:\n        row += 1\n"
    "    return z\n",
    "a part of a parameter": "def f(x: torch.Tensor):\n    for row in x.unbind(1):\n        row += 1\n    return x\n",
    "a part of what the loop reads": "def f(x: torch.Tensor):\n    y = torch.zeros_like(x)\n    for row in y:\n        row += y.sum()\n    return y\n",
    "what a comprehension changes each time": "def f(x: torch.Tensor):\n    y = x * 2\n    return [y.add_(i) for i in range(3)]\n",
    "what a tuple holds, by its place": "def f(x: torch.Tensor, y: torch.Tensor):\n    found = (x * 2, y)\n    found[0].add_(1)\n    return found\n",
    "what a list and a name hold": "def f(x: torch.Tensor):\n    y = x * 2\n    found = [y]\n    found[0].add_(1)\n    return y\n",
    "parts that are swapped through views": "def f(x: torch.Tensor):\n    x[0], x[1] = x[1], x[0]\n    return x\n",
    "a conversion that may give the tensor itself": "def f(x: torch.Tensor):\n    y = x.float()\n    y[0] = 1\n    return x, y\n",
    "what an inner function changes, of which there is a view": "def f(x: torch.Tensor):\n    y = x * 2\n    v = y[0]\n\n    def g():\n        y.add_(1)\n\n"
    "    g()\n    return v\n",
}
PASSED_ON = {
    "an attribute and its view": (
        "def f(o, x: torch.Tensor):\n    o.kept = x * 2\n    row = o.kept[0]\n    row.add_(1)\n    return row\n",
        'def f(o, x: jax.Array):\n    o.kept = x * 2\n    row = o.kept[0]\n    row = row + 1\n    overwrite(o, "kept", o.kept.at[0].set(row))\n    return row\n',
    ),
    "what a tensor copies": (
        "def f(x: torch.Tensor, out: torch.Tensor):\n    y = x * 2\n    out[0] = y\n    y.mul_(2)\n    return out, y, x.add(y)\n",
        "def f(x: jax.Array, out: jax.Array):\n    y = x * 2\n    out = out.at[0].set(y)\n    y = y * 2\n    return out, y, x + y\n",
    ),
    "what a list takes after each change": (
        "def f(x: torch.Tensor):\n    found = []\n    for _ in range(3):\n        h = x * 2\n        h += x\n        found.append(h)\n    return found\n",
        "def f(x: jax.Array):\n    found = []\n    for _ in range(3):\n        h = x * 2\n        h += x\n        found.append(h)\n    return found\n",
    ),
    "a name and its view, by a call whose value is used": (
        "def f(x: torch.Tensor):\n    y = x * 2\n    v = y\n    z = y.mul_(2)\n    return z, v\n",
        "def f(x: jax.Array):\n    y = x * 2\n    v = y\n    y = y * 2\n    v = y\n    z = y\n    return z, v\n",
    ),
    "a conversion to another dtype": (
        "def f(x: torch.Tensor):\n    y = x.long().float()\n    y[0] = 1\n    return x, y\n",
        "def f(x: jax.Array):\n    y = x.astype(int).astype(jnp.float32)\n    y = y.at[0].set(1)\n    return x, y\n",
    ),
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
