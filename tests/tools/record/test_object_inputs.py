"""Arguments that are objects with attributes, or lists of such: guessed by what the code reads of them, and mended as other arguments are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate_agent.sandbox.base import Sandbox
from migrate_agent.tools.record.guessing.objects.object_reads import object_inputs
from migrate_agent.tools.record.guessing.trials.object_inputs import named_leaves
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, text
from migrate_agent.tools.record.guessing.values import Sequence as Items
from migrate_agent.tools.record.infer import infer

HEAD = "import torch\nfrom torch import nn\n"
LINEAR = " def __init__(self, dim):\n  super().__init__()\n  self.lin = nn.Linear(dim, dim)\n"
GRAPH = "types.SimpleNamespace(x=torch.randn(16, 64), adj=torch.rand(16, 16))"

GUESSABLE = {
    "attributes unpacked in one line, one of which others are indexed with": (
        "class Net(nn.Module):\n" + LINEAR + " def forward(self, data):\n  x, order = data.x, data.order\n  return self.lin(x)[order]\n",
        ("64", "types.SimpleNamespace(x=torch.randn(2, 16, 64), order=torch.randint(0, 2, (2, 16, 64)))"),
    ),
    "words for an embedding": (
        "class Net(nn.Module):\n def __init__(self, n_vocab=20):\n  super().__init__()\n  self.embed = nn.Embedding(n_vocab, 8)\n"
        " def encode(self, b):\n  return self.embed(b.src)\n"
        " def forward(self, batch):\n  return self.encode(batch) + self.embed(batch.trg)\n",
        ("", "types.SimpleNamespace(src=torch.randint(0, 20, (2, 16)), trg=torch.randint(0, 20, (2, 16)))"),
    ),
    "rows that an index adds up": (
        "class Net(nn.Module):\n"
        + LINEAR
        + " def forward(self, g):\n  out = torch.zeros(g.num_graphs, g.x.size(-1))\n  return out.index_add(0, g.batch, self.lin(g.x))\n",
        ("64", "types.SimpleNamespace(num_graphs=4, x=torch.randn(16, 64), batch=torch.randint(0, 2, (16,)))"),
    ),
    "a list, which a private method is handed": (
        "class Net(nn.Module):\n"
        + LINEAR
        + " def __sums(self, graphs):\n  return [graphs[i].adj @ self.lin(graphs[i].x) for i in range(len(graphs))]\n"
        " def forward(self, batch_graph):\n  x = torch.cat([graph.x for graph in batch_graph])\n"
        "  return x.mean() + torch.stack(self.__sums(batch_graph))\n",
        ("64", f"[{GRAPH}, {GRAPH}]"),
    ),
    "an object in the hands of parts that a loop goes through": (
        "class Part(nn.Module):\n"
        + LINEAR
        + " def forward(self, h, graph):\n  return self.lin(graph.adj @ h)\n"
        + "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.parts = nn.ModuleList([Part(dim), Part(dim)])\n"
        " def forward(self, graph):\n  h = graph.x\n  for part in self.parts:\n   h = part(h, graph)\n  return h\n",
        ("64", GRAPH),
    ),
    "a name that only the error says, beside an object in the object": (
        "class Net(nn.Module):\n def __init__(self, dim):\n  super().__init__()\n  self.lin, self.key = nn.Linear(dim, dim), 'pixel'\n"
        " def forward(self, inputs):\n  return self.lin(getattr(inputs, self.key)) + inputs.meta.offset.unsqueeze(-1)\n",
        ("64", "types.SimpleNamespace(meta=types.SimpleNamespace(offset=torch.randn(2, 16)), pixel=torch.randn(2, 16, 64))"),
    ),
    "a tensor that may be an object": (
        "class Net(nn.Module):\n" + LINEAR + " def forward(self, samples):\n  if hasattr(samples, 'tensors'):\n"
        "   samples = samples.tensors.unsqueeze(0)\n  return self.lin(samples)\n",
        ("64", "torch.randn(2, 16, 64)"),
    ),
}


@pytest.mark.parametrize("name", GUESSABLE)
def test_what_is_read_of_an_object(name: str, repository: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    source, wanted = GUESSABLE[name]
    inventory = repository({"net.py": HEAD + source})
    example = infer(inventory, inventory.units[-1], sandbox, tmp_path / "guess").example
    assert example is not None
    assert (example.init, example.call) == wanted


class Reader:
    """Functions of one argument, and what they say of it."""

    def scores(self, data: Any) -> Any:
        """An object whose edges show that it is a graph."""
        return data.features[data.edge_index[0]]

    def moved(self, data: Any) -> Any:
        """A method asks for more than a plain object."""
        return data.to("cpu").features

    def replaced(self, data: Any) -> Any:
        """What is read of another value."""
        data = self.scores(data.T)
        return data.features

    def shapes(self, data: Any) -> Any:
        """A tensor."""
        return data.shape, data.T, [row.shape for row in data]

    def filled(self, data: Any) -> Any:
        """An attribute that the code sets itself."""
        data.hidden = data.features
        return data.hidden

    def repeated(self, data: Any) -> Any:
        """A number, and the largest of several."""
        return [[0] * max([one.most for one in data]) for _ in range(data[0].steps)]


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("scores", ["types.SimpleNamespace(features=torch.randn(16, 4), edge_index=torch.randint(0, 16, (2, 32)))"]),
        ("moved", []),
        ("replaced", []),
        ("shapes", []),
        ("filled", ["types.SimpleNamespace(features=torch.randn(2, 16, 4))"]),
        ("repeated", ["[types.SimpleNamespace(most=4, steps=4), types.SimpleNamespace(most=4, steps=4)]"]),
    ],
)
def test_what_a_function_says_of_its_argument(method: str, wanted: list[str]) -> None:
    values = object_inputs(getattr(Reader, method), Reader(), "data", Tensor((2, 16, 4)))
    assert [text(value) for value in values][: len(wanted) or None] == wanted


def _object(**items: Value) -> Fields:
    return Fields(tuple(items.items()), "namespace")


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ({"data": _object(x=Tensor((2,)), y="1")}, {"x": ("data", "x"), "y": ("data", "y")}),
        ({"x": Tensor((2,)), "data": _object(x=Tensor((2,)))}, {"x": ("x",), "data_x": ("data", "x")}),
        ({"graphs": Items((_object(x=Tensor((2,))),) * 2)}, {"x": ("graphs", "x")}),
        ({"xs": Items((Tensor((2,)),) * 2), "table": Fields((("a", "1"),), "dict")}, {"xs": ("xs",), "a": ("table", "a")}),
        ({"a": _object(b=_object(c="1"), d="2")}, {"c": ("a", "b", "c"), "d": ("a", "d")}),
    ],
)
def test_names_of_what_lies_in_arguments(call: dict[str, Value], names: dict[str, tuple[str, ...]]) -> None:
    assert {leaf.name: leaf.path for leaf in named_leaves(tuple(call.items()))} == names
