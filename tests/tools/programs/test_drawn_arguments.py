"""Draws of functions that a loss is computed by, and what statements read before they bind it."""

from __future__ import annotations

import libcst as cst
import pytest

from migrate_agent.tools.programs.rewrite.drawn_arguments import DrawnArguments
from migrate_agent.tools.programs.rewrite.names import Imports, exposed

FUNCTION = "import torch\n\n\ndef mix(d, real):\n    alpha = torch.rand(real.size(0), 1)\n    return d(alpha * real)\n\n\n"
KEEP = (
    # Of what the function computes, not of what it is handed.
    (FUNCTION.replace("(real.size(0), 1)", "(count, 1)").replace("alpha =", "count = d(real)\n    alpha =") + "gp = mix(net, x)\n"),
    # Handed on as a value, so that calls of it are not all in sight.
    FUNCTION + "gp = mix(net, x)\nrun(mix)\n",
    # The argument would be computed twice.
    FUNCTION + "gp = mix(net, batch())\n",
)


def _rewritten(text: str) -> str:
    module = cst.parse_module(text)
    return module.visit(DrawnArguments(module, Imports(text))).code


def test_draws_become_arguments() -> None:
    """And are drawn before the call, of the call's own names."""
    text = _rewritten(FUNCTION + "# penalty\ngp = mix(net, x)\n")
    assert "def mix(d, real, alpha):\n    return d(alpha * real)\n" in text
    assert text.endswith("# penalty\nalpha = torch.rand(x.size(0), 1)\ngp = mix(net, x, alpha)\n")


@pytest.mark.parametrize("text", KEEP)
def test_other_draws_stay(text: str) -> None:
    """When unsure, nothing is rewritten."""
    assert _rewritten(text) == text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("for i in steps:\n    out, h = f(x, h)\n    loss += g(out)\n", ["steps", "f", "x", "h", "loss", "g"]),
        ("if flag:\n    a = 1\nelse:\n    a = b\n    c = a\n", ["flag", "b"]),
        ("if flag:\n    a = 1\nc = a\n", ["flag", "a"]),
        ("for i in steps:\n    if flag:\n        y = x\n    else:\n        y = z(i)\n    w = y\n", ["steps", "flag", "x", "z"]),
    ],
)
def test_names_that_are_read_before_they_are_bound(text: str, names: list[str]) -> None:
    """Of branches, what both bind is known afterwards."""
    block = cst.parse_module(f"def f():\n{''.join(f'    {line}{chr(10)}' for line in text.splitlines())}").body[0]
    assert isinstance(block, cst.FunctionDef)
    wrapped = cst.If(cst.Name("True"), block.body) if len(block.body.body) > 1 else block.body.body[0]
    assert [name for name in exposed(wrapped) if name != "True"] == names
