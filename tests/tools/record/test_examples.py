"""Examples that users write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from migrate_agent.tools.record.examples import ExampleError, find_unit, from_config, from_convention
from migrate_agent.tools.types import Example

MODEL = """
import torch
from torch import nn
class GPT(nn.Module): pass
class Block(nn.Module): pass
"""
FILES = {"model.py": MODEL, "pkg/other.py": MODEL.replace("GPT", "Vision")}


def test_rows_may_be_mappings_or_objects(repository: Any) -> None:
    rows: list[Any] = [
        {"module": "model.py:GPT", "init": "4", "call": "torch.zeros(2)", "train": True, "domain": {"min": -3, "max": 3.0}},
        SimpleNamespace(module="Vision", init="", call="x", setup="x = 1", train=None, domain=SimpleNamespace(min=0, max=1)),
    ]
    assert from_config(repository(FILES), rows) == (
        Example("model.py:GPT", "4", "torch.zeros(2)", "", True, (-3.0, 3.0), "config"),
        Example("pkg/other.py:Vision", "", "x", "x = 1", None, (0.0, 1.0), "config"),
    )


BROKEN = {
    "near match": ({"module": "model.py:GTP"}, "example 1: no module or function model.py:GTP; did you mean model.py:GPT"),
    "no match": ({"module": "xyz"}, "no module or function xyz; there are 4"),
    "ambiguous": ({"module": "Block"}, "ambiguous: model.py:Block, pkg/other.py:Block"),
    "broken text": ({"module": "GPT", "call": "torch.zeros(2"}, "`call` is not valid Python"),
    "two calls": ({"module": "GPT", "init": "1), f(2"}, "`init` is not what stands between the parentheses"),
    "broken setup": ({"module": "GPT", "setup": "import"}, "`setup` is not valid Python"),
    "domain": ({"module": "GPT", "domain": {"min": 1, "max": 1}}, "domain needs min < max"),
    "half a domain": ({"module": "GPT", "domain": {"min": 1}}, "domain needs min < max"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_says_what_is_wrong(name: str, repository: Any) -> None:
    row, message = BROKEN[name]
    with pytest.raises(ExampleError, match=message):
        from_config(repository(FILES), [row])


def test_a_unit_may_be_named_by_its_class_alone(repository: Any) -> None:
    assert find_unit(repository(FILES), "Vision") == "pkg/other.py:Vision"


BENCH = "import torch\nfrom torch import nn\nclass Model(nn.Module): pass\n"
CONVENTIONS = {
    "both": (BENCH + "def get_init_inputs(): return [3]\ndef get_inputs(): return []\n", ("*get_init_inputs()", "*get_inputs()")),
    "no init": (BENCH + "def get_inputs(size=3): return []\n", ("", "*get_inputs()")),
    "no inputs": (BENCH + "def get_init_inputs(): return [3]\n", None),
    "inputs need an argument": (BENCH + "def get_inputs(size): return []\n", None),
    "nested function": (BENCH + "def f():\n    def get_inputs(): return []\n", None),
    "another class": ("import torch\nclass Net(torch.nn.Module): pass\ndef get_inputs(): return []\n", None),
    "does not parse": ("class Model(nn.Module: pass\n", None),
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_convention_is_found_without_importing(name: str, repository: Any) -> None:
    source, wanted = CONVENTIONS[name]
    found = from_convention(repository({"bench/case.py": source + "\nraise SystemExit\n"}))
    assert [(example.unit, example.init, example.call, example.origin) for example in found] == (
        [("bench/case.py:Model", *wanted, "convention")] if wanted else []
    )
