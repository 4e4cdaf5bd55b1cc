"""Constructions that take other calls than the usual ones, and settings that lie in objects and dictionaries, are reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tools.record.further import further_examples
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Limits, Recording

HEAD = "import torch\nfrom torch import nn\n"
RECURRENT = f"""{HEAD}
class M(nn.Module):
    def __init__(self, width, recurrent=False):
        super().__init__()
        self.recurrent = recurrent
        if recurrent:
            self.gru = nn.GRU(width, width)
        self.fc = nn.Linear(width, 1)
    def forward(self, x, state, masks):
        if self.recurrent:
            x, state = self.gru(x.unsqueeze(0), (state * masks).unsqueeze(0))
            x, state = x.squeeze(0), state.squeeze(0)
        return self.fc(x), state
"""
SHAPES = f"""{HEAD}
class M(nn.Module):
    def __init__(self, shape, width=8):
        super().__init__()
        if len(shape) == 3:
            self.base = nn.Sequential(nn.Conv2d(shape[0], width, 8, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(width * 49, width))
        else:
            self.base = nn.Linear(shape[0], width)
    def forward(self, x):
        return self.base(x)
"""
NAMESPACE = f"""{HEAD}
class M(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.width = 48 if args.arch == "large" else 27
        self.conv = nn.Conv2d(3, 3, 8, stride=8) if args.arch == "large" else nn.Conv2d(3, 3, 4, stride=4)
        self.norm = nn.Identity() if args.norm.kind == "none" else nn.BatchNorm2d(3)
    def forward(self, x):
        return self.norm(self.conv(x)).view(-1, self.width)
"""
DICTIONARY = f"""{HEAD}
class M(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        kind = cfg.get("kind", "linear")
        if kind == "linear":
            self.fc = nn.Linear(cfg["width"], 4)
        elif kind == "bilinear":
            self.fc = nn.Sequential(nn.Linear(cfg["width"], 2), nn.Linear(2, 4))
        if cfg["head"]["act"] == "relu":
            self.act = nn.ReLU()
        else:
            self.act = nn.Tanh()
    def forward(self, x):
        return self.act(self.fc(x))
"""


@pytest.mark.parametrize(
    ("source", "init", "call", "setup", "reached"),
    [
        pytest.param(
            RECURRENT,
            "8",
            "torch.randn(2, 16, 8), torch.randn(2, 16, 8), None",
            "",
            ("8, recurrent=True", "torch.randn(2, 8), torch.randn(2, 8), torch.randn(2, 8)"),
            id="a state and a mask where it is recurrent",
        ),
        pytest.param(
            SHAPES, "(8,)", "torch.randn(2, 8)", "", ("(3, 32, 32)", "torch.randn(2, 3, 32, 32)"), id="as many sizes as code asks about"
        ),
        pytest.param(
            NAMESPACE,
            "types.SimpleNamespace(arch='small', norm=types.SimpleNamespace(kind='none'))",
            "torch.randn(2, 3, 12, 12)",
            "import types",
            ("types.SimpleNamespace(arch='large', norm=types.SimpleNamespace(kind='none'))", "torch.randn(2, 3, 32, 32)"),
            id="a setting of a namespace with other images",
        ),
        pytest.param(
            NAMESPACE,
            "types.SimpleNamespace(arch='small', norm=types.SimpleNamespace(kind='none'))",
            "torch.randn(2, 3, 12, 12)",
            "import types",
            ("types.SimpleNamespace(arch='small', norm=types.SimpleNamespace(kind='other'))", "torch.randn(2, 3, 12, 12)"),
            id="a setting of a namespace in a namespace",
        ),
        pytest.param(
            DICTIONARY,
            "{'kind': 'linear', 'width': 8, 'head': {'act': 'relu'}}",
            "torch.randn(2, 8)",
            "",
            ("{'kind': 'bilinear', 'width': 8, 'head': {'act': 'relu'}}", "torch.randn(2, 8)"),
            id="a setting of a dictionary",
        ),
        pytest.param(
            DICTIONARY,
            "{'kind': 'linear', 'width': 8, 'head': {'act': 'relu'}}",
            "torch.randn(2, 8)",
            "",
            ("{'kind': 'linear', 'width': 8, 'head': {'act': 'none'}}", "torch.randn(2, 8)"),
            id="a setting of a dictionary in a dictionary",
        ),
    ],
)
def test_what_settings_tell_apart_is_reached(
    tmp_path: Path, source: str, init: str, call: str, setup: str, reached: tuple[str, str]
) -> None:
    (tmp_path / "model.py").write_text(source)
    inventory = scan(tmp_path)
    unit = inventory.unit("model.py:M")
    with ProcessSandbox() as sandbox:
        found = further_examples(inventory, [(unit, [Example(unit.id, init, call, setup)])], Recording(), sandbox, Limits())
    assert reached in [(example.init, example.call) for example in found], [(example.init, example.call) for example in found]
