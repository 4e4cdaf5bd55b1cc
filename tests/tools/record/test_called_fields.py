"""Objects that a constructor is handed and whose methods it calls: functions that give what the code asks for."""

from __future__ import annotations

from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.infer import infer

HEAD = "import torch\nfrom torch import nn\n"
ROWS = " def forward(self, items):\n  rows = {}\n  return rows[items.long()]\n"
GUESSABLE = {
    "a sparse matrix of all that two counts name": (
        "class Rows:\n @property\n def n_left(self):\n  raise NotImplementedError\n def getGraph(self):\n  raise NotImplementedError\n"
        "class Net(nn.Module):\n def __init__(self, rows: Rows):\n  super().__init__()\n  self.rows: Rows = rows\n  self.make()\n"
        " def make(self):\n  self.left = nn.Embedding(self.rows.n_left, 8)\n  self.right = nn.Embedding(self.rows.n_right, 8)\n"
        "  self.graph = self.rows.getGraph()\n"
        + ROWS.format("torch.sparse.mm(self.graph, torch.cat([self.left.weight, self.right.weight]))"),
        "getGraph=lambda: torch.linspace(0, 0.01562, 16384).reshape(128, 128).to_sparse()",
    ),
    "a dense one": (
        "class Net(nn.Module):\n def __init__(self, data):\n  super().__init__()\n  self.table = nn.Embedding(data.n_rows, 8)\n"
        "  graph = data.graph()\n  assert not graph.is_sparse, 'sparse'\n  self.register_buffer('graph', graph)\n"
        + ROWS.format("self.graph @ self.table.weight"),
        "graph=lambda: torch.linspace(0, 0.03125, 4096).reshape(64, 64), n_rows",
    ),
    "parts of a model that are called with something": (
        "class Net(nn.Module):\n def __init__(self, model):\n  super().__init__()\n  self.stem, self.head = model.stem, model.head\n"
        " def forward(self, x):\n  x = self.stem(x)\n  return self.head(x)\n",
        "types.SimpleNamespace(stem=torch.nn.Tanh(), head=torch.nn.Sigmoid())",
    ),
    "a model of the repository that has such parts": (
        "class Model(nn.Module):\n def __init__(self, width):\n  super().__init__()\n  self.stem, self.head = nn.Linear(width, 8), nn.Linear(8, 4)\n"
        "class Net(nn.Module):\n def __init__(self, trunk):\n  super().__init__()\n  self.stem, self.head = trunk.stem, trunk.head\n"
        " def forward(self, x):\n  x = self.stem(x)\n  return self.head(x)\n",
        "Model(width=",
    ),
    "a number": (
        "class Net(nn.Module):\n def __init__(self, vocab):\n  super().__init__()\n  self.table = nn.Embedding(vocab.get_size(), vocab.width)\n"
        " def forward(self, items):\n  return self.table(items)\n",
        "get_size=lambda: 64",
    ),
}


@pytest.mark.parametrize("name", GUESSABLE)
def test_methods_of_an_object_give_values(name: str, repository: Any, sandbox: Sandbox, tmp_path: Any) -> None:
    source, wanted = GUESSABLE[name]
    inventory = repository({"net.py": HEAD + source})
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None
    assert wanted in example.init


def test_a_table_is_filled_by_options_of_another_file(repository: Any, sandbox: Sandbox, tmp_path: Any) -> None:
    files = {
        "options.py": "import argparse\ndef read():\n parser = argparse.ArgumentParser()\n"
        " parser.add_argument('--rows', type=int, default=12)\n return parser.parse_args()\n",
        "world.py": "from options import read\nargs = read()\nconfig = {}\nconfig['width'] = args.rows\nconfig['deep'] = False\n",
        "net.py": HEAD + "class Net(nn.Module):\n def __init__(self, config):\n  super().__init__()\n  assert not config['deep']\n"
        "  self.fc = nn.Linear(config['width'], 4)\n def forward(self, x):\n  return self.fc(x)\n",
    }
    inventory = repository(files)
    example = infer(inventory, inventory.unit("net.py:Net"), sandbox, tmp_path / "guess").example
    assert example is not None
    assert example.init == "{'deep': False, 'width': 12}"
