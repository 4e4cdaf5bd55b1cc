"""Functions that give values to what they are handed, parameters of modules and plain tensors alike: they hand the new values back."""

from __future__ import annotations

from pathlib import Path

from migrate_agent.tests.tools.rewrite.snippets import snippet_workspace, tidy
from migrate_agent.tools.types import Observed, Span

SOURCE = """import torch
from torch import nn

def init(w, kind):
    if kind is None:
        return
    if kind == "zeros":
        nn.init.zeros_(w)
    else:
        nn.init.ones_(w)

class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layer = nn.LayerNorm(d)
        init(self.layer.bias, "zeros")
        table = torch.zeros(d)
        init(table, "ones")
        part = table[:2]
        init(part, "zeros")
        self.register_buffer("table", table)
"""


def test_parameters_and_tensors(tmp_path: Path) -> None:
    seen = {}
    for number, line in enumerate(SOURCE.splitlines(), 1):
        if "zeros_(w)" in line:
            seen[Span(number, line.find("w)"), number, line.find("w)") + 1)] = Observed(("parameter", "tensor"), ((4,),), ("float32",))
        if "ones_(w)" in line:  # this one saw parameters alone
            seen[Span(number, line.find("w)"), number, line.find("w)") + 1)] = Observed(("parameter",), ((4,),), ("float32",))
        if (at := line.find("self.layer.bias")) >= 0:
            seen[Span(number, at, number, at + 15)] = Observed(("parameter",), ((4,),), ("float32",))
            seen[Span(number, at, number, at + 10)] = Observed(("module:torch.nn.LayerNorm",))
    space = snippet_workspace(tmp_path, SOURCE, {"snippet.py": seen})
    text = tidy("".join(statement.text for statement in space.statements("snippet.py")))
    assert not space.rewritten("snippet.py").holes
    assert "w = jnp.zeros_like(w)\n    else:\n        w = jnp.ones_like(w)\n    return w\n" in text
    assert 'bias[...] = init(self.layer.bias, "zeros", rngs=rngs)' in text
    assert 'table = init(table, "ones", rngs=rngs)\n' in text
    assert 'part = init(part, "zeros", rngs=rngs)\n        table = table.at[:2].set(part)\n' in text
