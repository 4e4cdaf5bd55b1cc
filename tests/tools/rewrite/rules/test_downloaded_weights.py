"""Which uses of a downloaded state dictionary are left out, and which stay holes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.tools.rewrite.snippets import rewrite_snippet

MODULE = """
import os
from collections import OrderedDict

import torch
from torch import nn
from torch.hub import load_state_dict_from_url
from torch.utils import model_zoo

URL = "https://a.b/m.pth"


class M(nn.Module):
    def __init__(self, d, names=None, given=None, **options):
        super().__init__()
        self.layer = nn.Linear(d, d)
        self.extra = {}
        self.other = nn.Linear(d, d)
"""
LEFT_OUT = {
    "at once": "self.load_state_dict(model_zoo.load_url(URL))",
    "of an attribute": "self.layer.load_state_dict(load_state_dict_from_url(url=URL, progress=True), strict=False)",
    "an entry of the checkpoint": "w = load_state_dict_from_url(URL)['state_dict']\nself.load_state_dict(w)",
    "renamed": "w = load_state_dict_from_url(URL)\nw = {k.replace('module.', ''): v for k, v in w.items()}\nself.load_state_dict(w)",
    "in order": "w = OrderedDict()\nfor k, v in model_zoo.load_url(URL).items():\n    w[k[7:]] = v\nself.load_state_dict(w)",
    "own entries in place of absent ones": (
        "own = self.state_dict()\nw = model_zoo.load_url(URL)\nfor k in own:\n    if k not in w:\n        w[k] = own[k]\nself.load_state_dict(w)"
    ),
    "entries that go": "w = model_zoo.load_url(URL)\nfor k in ['fc.weight', 'fc.bias']:\n    w.pop(k, None)\nself.load_state_dict(w)",
    "copied into its own state": (
        "own = self.state_dict()\nfor k, v in model_zoo.load_url(URL).items():\n    if k not in own:\n        continue\n    own[k].copy_(v)"
    ),
    "what is missing is told": (
        "missing, more = self.load_state_dict(model_zoo.load_url(URL), strict=False)\nprint('missing', missing)\nassert not more, more"
    ),
    "a parameter bound anew": "if given:\n    given = model_zoo.load_url(URL)\n    self.load_state_dict(given)",
    "without gradients": "with torch.no_grad():\n    self.load_state_dict(model_zoo.load_url(URL))",
}
HOLES = {
    "an attribute": "self.extra = model_zoo.load_url(URL)",
    "an entry of an attribute": "self.extra['mean'] = model_zoo.load_url(URL)['mean']",
    "a layer of its size": "w = model_zoo.load_url(URL)\nself.head = nn.Linear(2, len(w))\nself.load_state_dict(w)",
    "values of a weight": "w = model_zoo.load_url(URL)\nself.layer.weight.data = w['weight'].mean(0)",
    "a method that changes the module": "w = model_zoo.load_url(URL)\nlayer = self.layer\nlayer.grow(w)",
    "a switch that depends on it": "w = model_zoo.load_url(URL)\nif 'bias' in w:\n    self.biased = True\nself.load_state_dict(w)",
    "the state of another module": "w = self.other.state_dict()\nw.update(model_zoo.load_url(URL))\nself.layer.load_state_dict(w)",
    "weights that are given": "if given is None:\n    given = model_zoo.load_url(URL)\nself.load_state_dict(given)",
    "weights that are given besides": "w = model_zoo.load_url(URL)\nw.update(names)\nself.load_state_dict(w)",
    "weights that are given in a new dictionary": "w = {**model_zoo.load_url(URL), **names}\nself.load_state_dict(w)",
    "weights of a file": "w = torch.load('a') if os.path.exists('a') else model_zoo.load_url(URL)\nself.load_state_dict(w)",
    "an object that is no module": "w = model_zoo.load_url(URL)\nnames.load_state_dict(w)",
    "what is handed back": "w = model_zoo.load_url(URL)\nself.load_state_dict(w)\nnames.append(w)",
    "an argument that changes": "names['a'] = model_zoo.load_url(URL)['a']",
}


def rewritten(folder: Path, statements: str) -> tuple[str, int]:
    text, holes = rewrite_snippet(folder, MODULE + textwrap.indent(statements, " " * 8) + "\n")
    return text, len(holes)


@pytest.mark.parametrize("statements", LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_loading_goes_with_a_comment(tmp_path: Path, statements: str) -> None:
    text, holes = rewritten(tmp_path, statements)
    assert not holes
    assert "# The weights of " in text
    assert "load_state_dict" not in text
    assert not {"load_url", "load_state_dict_from_url"} & set(text.replace("(", " ").split())


@pytest.mark.parametrize("statements", HOLES.values(), ids=HOLES.keys())
def test_anything_else_stays_a_hole(tmp_path: Path, statements: str) -> None:
    text, holes = rewritten(tmp_path, statements)
    assert holes
    assert "# The weights of " not in text


def test_a_class_with_a_loading_of_its_own_stays_a_hole(tmp_path: Path) -> None:
    own = "        self.load_state_dict(model_zoo.load_url(URL))\n\n    def load_state_dict(self, state):\n        self.extra = state\n"
    assert rewrite_snippet(tmp_path, MODULE + own)[1]
