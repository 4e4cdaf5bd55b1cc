"""Layers that a table chooses take no `rngs` where none of them draws, and numbers that are read out stay as they are beside floats of Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Observed, Span
from tests.tools.rewrite.snippets import snippet_workspace

SOURCE = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self, act):
        super().__init__()
        table = {table}
        layer = table[act]
        self.act = layer()

    def forward(self, x):
        return self.act(x)
"""


def mirror_of(source: str, init: str, sandbox: Sandbox, folder: Path) -> str:
    root = folder / "repository"
    root.mkdir()
    (root / "net.py").write_text(source)
    inventory = scan(root)
    recording = record(inventory, [Example("net.py:M", init, "torch.ones(3)")], sandbox, folder / "recording")
    return compose(inventory, recording.observations, ["net.py:M"], examples=recording.examples).files["net_jax.py"]


@pytest.mark.parametrize(
    ("table", "construction"),
    [
        ("{'relu': nn.ReLU, 'tanh': nn.Tanh}", "layer()"),
        ("{'relu': nn.ReLU, 'drop': nn.Dropout}", "layer(rngs=rngs)"),
        ("dict(relu=nn.ReLU)", "layer(rngs=rngs)"),
    ],
)
def test_layers_of_a_table(sandbox: Sandbox, tmp_path: Path, table: str, construction: str) -> None:
    text = mirror_of(SOURCE.replace("{table}", table), "'relu'", sandbox, tmp_path)
    assert f"self.act = {construction}" in text


CALLED = """import torch
from torch import nn


def gain(activation):
    try:
        return 1.0 if isinstance(activation(), nn.Module) else 3.0
    except TypeError:
        return 2.0
"""


@pytest.mark.parametrize(
    ("kinds", "codes"),
    [
        (("class:torch.nn.Tanh",), []),
        (("str", "class:torch.nn.Tanh"), []),  # a call of a text raises on both sides
        (("none", "class:torch.nn.Tanh"), []),
        (("str", "function:torch.tanh", "class:torch.nn.Tanh"), ["mixed-callee"]),
    ],
)
def test_what_cannot_be_called_is_no_other_callee(tmp_path: Path, kinds: tuple[str, ...], codes: list[str]) -> None:
    space = snippet_workspace(tmp_path, CALLED, {"snippet.py": {Span(7, 33, 7, 43): Observed(kinds)}})
    statements = space.statements("snippet.py")
    assert [hole.code for statement in statements for hole in statement.holes] == codes
    assert ("activation(rngs=rngs)" in "".join(statement.text for statement in statements)) == (not codes)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float(i) / float(n)", "i / float(n)"),
        ("float(i) / float(i)", "i / (i * 1.0)"),
        ("float(i) / (float(i) + 1e-6)", "i / (i + 1e-6)"),
        ("1 / float(i)", "1 / (i * 1.0)"),
        ("2.0 * float(i)", "2.0 * i"),
        ("float(i) // 2.0", "(i * 1.0) // 2.0"),
        ("float(i) / n", "(i * 1.0) / n"),
    ],
)
def test_numbers_beside_floats(sandbox: Sandbox, tmp_path: Path, before: str, after: str) -> None:
    source = (
        "from torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x):\n        i, n = x.long().sum(), 3\n"
        f"        y = {before}\n        return x * y\n"
    )
    assert f"y = {after}\n" in mirror_of(source, "", sandbox, tmp_path)
