"""Configurations from which a library makes objects, references in configuration files, and errors that a library made of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.guessing.objects.interpolations import ABSENT, resolved
from migrate_agent.tools.record.guessing.trials.place import causes
from migrate_agent.tools.record.infer import infer

REFERENCES = {
    "a value of its own": (3, 3),
    "another one": ("${width}", 8),
    "through two": ("${net.inner.size}", 8),
    "a table": ("${net.inner}", {"size": 8}),
    "in a text": ("run_${width}", "run_8"),
    "beside it": ("${.width}", 8),
    "of another file": ("${lr}", 0.1),
    "in a list": (["${width}", 2], [8, 2]),
    "what a script sets": ("???", ABSENT),
    "what no file says": ("${nothing.here}", ABSENT),
    "a function": ("${now:%Y}", ABSENT),
    "itself": ("${own}", ABSENT),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_references_are_followed(name: str) -> None:
    value, wanted = REFERENCES[name]
    root = {"width": 8, "net": {"inner": {"size": "${width}"}}, "own": value}
    others = [root, {"lr": 0.1}]
    assert resolved(others, root).get("own", ABSENT) == wanted


def test_a_reference_with_dots_stays_in_its_table() -> None:
    root = {"net": {"size": 4, "wide": "${.size}", "deep": {"size": "${..size}"}}, "size": 1}
    assert resolved([root], root)["net"] == {"size": 4, "wide": 4, "deep": {"size": 4}}


MAKER = """
import importlib

def instantiate(config):
    module, name = config["_target_"].rsplit(".", 1)
    return getattr(importlib.import_module(module), name)(**{key: value for key, value in config.items() if key != "_target_"})
"""
NET = """
import torch
from torch import nn
import maker

class Encoder(nn.Module):
    def __init__(self, shape, features):
        super().__init__()
        assert len(shape) == 3
        self.conv, self.features = nn.Conv2d(shape[0], features, 3), features

    def forward(self, x):
        return self.conv(x).mean((2, 3))

class Net(nn.Module):
    def __init__(self, encoder_cfg, width):
        super().__init__()
        self.encoder = maker.instantiate(encoder_cfg)
        self.out = nn.Linear(self.encoder.features, width)

    def forward(self, x):
        return self.out(self.encoder(x))
"""
FILES = {
    "a table with its arguments under a key": (
        '{"encoder": {"class": "net.Encoder", "params": {"shape": "???", "features": "${size}"}}, "size": 6,'
        ' "net": {"class": "net.Net", "params": {"encoder_cfg": "${encoder}", "width": 3}}}',
        "'features': 6",
    ),
    "a table as the library takes it": ('{"encoder": {"_target_": "net.Encoder", "features": 6}}', "'features': 6"),
    "no table": ("{}", "'features': 64"),
}


@pytest.mark.parametrize("name", FILES)
def test_an_object_is_made_of_a_table(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    text, wanted = FILES[name]
    inventory = repository({"net.py": NET, "maker.py": MAKER, "config.json": text})
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None
    assert example.init.startswith("{'_target_': 'net.Encoder', ") and wanted in example.init
    assert "${" not in example.init


def test_a_library_tells_of_the_error_that_it_wraps() -> None:
    source = "def call(function):\n try:\n  function()\n except Exception as error:\n  raise RuntimeError('in a call') from error\n"
    wrapping: dict[str, Any] = {}
    empty: dict[str, int] = {}
    exec(compile(source, "/env/site-packages/library.py", "exec"), wrapping)
    with pytest.raises(RuntimeError) as caught:
        wrapping["call"](lambda: empty["width"])
    assert [type(error) for error in causes(caught.value)] == [RuntimeError, KeyError]
