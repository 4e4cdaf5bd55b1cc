"""Methods that read names whose import failed when the examples ran: stubs that name the import, which the mirror lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example

SOURCE = """import torch
{imports}
from torch import nn
from helper_x import plot, widen


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x, kind="plain"):
        {branch}
        return widen(self.layer(x))

    def other(self, x):
        {other}
"""
HELPER = "import absent_z as sns\n\n\ndef widen(x):\n    return 2 * x\n\n\ndef plot(x):\n    sns.plot(x)\n"


@pytest.mark.parametrize(
    ("imports", "branch", "other", "reason", "gone"),
    [
        ("import absent_x", "", "return absent_x.f(x)", "Net.other cannot be exercised: `import absent_x` failed", "import absent_x"),
        ("from math import absent_x, pi", "x = x * pi", "return absent_x(x)", "`from math import absent_x` failed", "import absent_x"),
        ("import absent_x.deep as d", "", "return d.f(x)", "`import absent_x.deep` failed", "absent_x.deep as"),
        (
            "from absent_x import f",
            "if kind == 'fast':\n            return f(x)",
            "return x",
            "this part of Net.forward cannot be exercised: `from absent_x import f` failed",
            "import f",
        ),
        ("import absent_x", "", "plot(x)", "plot cannot be exercised: `import absent_z` failed", "sns"),
    ],
)
def test_what_reads_an_absent_name(sandbox: Sandbox, tmp_path: Path, imports: str, branch: str, other: str, reason: str, gone: str) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    (root / "net.py").write_text(SOURCE.format(imports=imports, branch=branch, other=other))
    (root / "helper_x.py").write_text(HELPER)
    inventory = scan(root)
    recording = record(inventory, [Example("net.py:Net", "", "torch.randn(2, 3)")], sandbox, tmp_path / "recording")
    assert not recording.errors
    draft = compose(inventory, recording.observations, ["net.py:Net"], examples=recording.examples)
    text = " ".join(part for path, part in draft.files.items() if "nnx_layers" not in path)
    assert not draft.holes and reason in text and gone not in text.replace(reason, "")
