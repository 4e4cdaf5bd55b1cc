"""Guessed examples: each one ran in the sandbox before it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.record.guess import INIT_ROWS, argument_lists, parameter_texts
from migrate_agent.tools.record.infer import infer

HEAD = "import torch\nfrom torch import nn\nfrom dataclasses import dataclass\n"

GUESSABLE = {
    "linear layers": (
        "class Net(nn.Module):\n def __init__(self, in_features, hidden, p=0.1):\n  super().__init__()\n"
        "  self.fc = nn.Linear(in_features, hidden)\n def forward(self, x):\n  return self.fc(x)\n",
        ("64, 64", "torch.randn(2, 16, 64)"),
    ),
    "convolution of few channels": (
        "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.c = nn.Conv2d(5, 6, 3)\n"
        " def forward(self, x):\n  return self.c(x)\n",
        ("", "torch.randn(2, 5, 32, 32)"),
    ),
    "embedding, with a configuration": (
        "@dataclass\nclass Config:\n vocab_size: int = 50257\n n_embd: int = 768\n n_head: int = 12\n"
        "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n"
        "  self.e = nn.Embedding(config.vocab_size, config.n_embd)\n"
        " def forward(self, idx, targets=None):\n  return self.e(idx), None\n",
        ("Config(vocab_size=64, n_embd=64, n_head=4)", "torch.randint(0, 64, (2, 16))"),
    ),
    "annotated configuration with required fields": (
        "@dataclass\nclass Options:\n dim: int\n bias: bool\n"
        "class Net(nn.Module):\n def __init__(self, options: Options):\n  super().__init__()\n"
        "  self.fc = nn.Linear(options.dim, 3, bias=options.bias)\n def forward(self, x):\n  return self.fc(x)\n",
        ("Options(dim=64, bias=True)", "torch.randn(2, 16, 64)"),
    ),
    "inner module": (
        "class Net(nn.Module):\n def __init__(self, dim, fn):\n  super().__init__()\n  self.norm, self.fn = nn.LayerNorm(dim), fn\n"
        " def forward(self, x):\n  return self.fn(self.norm(x))\n",
        ("64, torch.nn.Identity()", "torch.randn(2, 16, 64)"),
    ),
    "second input and mask": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.q = nn.Linear(dim, dim)\n"
        " def forward(self, x, context, mask, *, t):\n  return self.q(x) @ context.transpose(1, 2) + t[:, None, None]\n",
        ("64", "torch.randn(2, 16, 64), torch.randn(2, 16, 64), None, t=torch.rand(2)"),
    ),
    "class that shares its name with a layer": (
        "class LayerNorm(nn.Module):\n def __init__(self, ndim, bias):\n  super().__init__()\n"
        "  self.weight = nn.Parameter(torch.ones(ndim))\n def forward(self, x):\n  return x * self.weight\n",
        ("64, True", "torch.randn(2, 16, 64)"),
    ),
}


@pytest.mark.parametrize("name", GUESSABLE)
def test_a_guess_that_runs_is_found(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source, wanted = GUESSABLE[name]
    inventory = repository({"net.py": HEAD + source})
    example = infer(inventory, inventory.units[-1], sandbox, tmp_path / "guess")
    assert example is not None
    assert (example.init, example.call) == wanted
    assert example.origin == "inference"
    assert record(inventory, [example], sandbox, tmp_path / "run").errors == {}


HOPELESS = {
    "never finite": "class Net(nn.Module):\n def forward(self, x):\n  return x * float('nan')\n",
    "no tensor comes out": "class Net(nn.Module):\n def forward(self, x):\n  return 3\n",
    "always raises": "class Net(nn.Module):\n def forward(self, x):\n  raise ValueError\n",
    "constructor always raises": "class Net(nn.Module):\n def __init__(self, a):\n  raise ValueError\n def forward(self, x):\n  return x\n",
    "import fails": "import not_there_at_all\nclass Net(not_there_at_all.Module):\n def forward(self, x):\n  return x\n",
}


@pytest.mark.parametrize("name", HOPELESS)
def test_none_where_no_guess_runs(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    inventory = repository({"net.py": HEAD + HOPELESS[name]})
    assert infer(inventory, inventory.units[0], sandbox, tmp_path) is None


TEXTS = {
    ("num_heads", ""): "4",
    ("attn_dropout", "float"): "0.0",
    ("dropout", ""): "0.0",
    ("image_size", ""): "32",
    ("depth", "int"): "2",
    ("n_layer", "int | None"): "2",
    ("eps", "float"): "1e-5",
    ("anything", "float"): "0.1",
    ("flag", "bool"): "True",
    ("norm_layer", ""): "torch.nn.LayerNorm",
    ("something", "int"): "64",
}


@pytest.mark.parametrize(("name", "annotation"), TEXTS)
def test_names_and_annotations_say_what_to_try_first(name: str, annotation: str) -> None:
    assert parameter_texts(name, annotation, INIT_ROWS)[0] == TEXTS[name, annotation]


def test_variants_change_one_argument_at_a_time() -> None:
    options = [("", ("1", "2")), ("k=", ("a", "b", "c"))]
    assert list(argument_lists(options, 9)) == ["1, k=a", "2, k=a", "1, k=b", "1, k=c"]
    assert list(argument_lists(options, 2)) == ["1, k=a", "2, k=a"]
    assert list(argument_lists([("", ())], 9)) == []
    assert list(argument_lists([], 9)) == [""]
