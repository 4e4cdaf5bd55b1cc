"""What a guess is made of: the words that code compares a parameter with, and what errors say of shapes."""

from __future__ import annotations

import ast
import enum
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.adapt import adapted_shape
from migrate_agent.tools.record.guessing.call_sites import Program, call_sites, notebooks
from migrate_agent.tools.record.guessing.choices import choices
from migrate_agent.tools.record.guessing.configs import tensor_texts
from migrate_agent.tools.record.guessing.refused import conditions, fitting
from migrate_agent.tools.record.guessing.trials.other_kinds import spelled_words
from migrate_agent.tools.record.guessing.trials.trial import constructor_parameters
from migrate_agent.tools.record.guessing.values import Fields, Sequence, Tensor, Value, text

TABLE = {"gln": 1, "cln": 2}


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def compared(kind: Any) -> int:
    if kind.lower() == "lstm":
        return 1
    return 2 if kind in ("gru", "rnn") else 3


def looked_up(kind: str) -> int:
    return TABLE[kind] + {"a": 1}.get(kind, 0)


def passed_on(kind: str, other: int) -> int:
    return compared(kind) + other


def annotated(kind: Literal["same", "valid"], colour: Colour) -> None: ...


def one_by_one(kinds: Any) -> int:
    total = 0
    for kind in kinds:
        if kind == "s":
            total += 1
        elif kind == "m":
            total += 2
        else:
            raise ValueError(kind)
    return total


class Held:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def ask(self) -> bool:
        return self.kind != "tanh"


class Checked:
    KINDS = ("small", "large")

    def __init__(self, kind: str, act: str = "relu") -> None:
        self._check(kind)
        self.act = self._chosen(act)

    def _check(self, kind: str) -> None:
        if kind not in self.KINDS:
            raise ValueError(kind)

    @staticmethod
    def _chosen(act: str) -> bool:
        return act == "relu" or act == "gelu"


def closed(stride: int, other: int) -> int:
    if stride == 16:
        return 1
    elif stride == 8:
        return 2
    else:
        raise NotImplementedError


def opened(stride: int) -> int:
    if stride == 1:
        return 2
    return stride


CHOICES: list[tuple[Callable[..., Any], str, tuple[str, ...]]] = [
    (compared, "kind", ("'lstm'", "'gru'", "'rnn'")),
    (looked_up, "kind", ("'gln'", "'cln'", "'a'")),
    (passed_on, "kind", ("'lstm'", "'gru'", "'rnn'")),
    (passed_on, "other", ()),
    (annotated, "kind", ("'same'", "'valid'")),
    (one_by_one, "kinds", ("['s', 'm']",)),
    (Held, "kind", ("'tanh'",)),
    (closed, "stride", ("16", "8")),
    (closed, "other", ()),
    (opened, "stride", ()),
    (Checked.__init__, "kind", ("'small'", "'large'")),
    (Checked.__init__, "act", ("'relu'", "'gelu'")),
]


@pytest.mark.parametrize(("function", "name", "expected"), CHOICES)
def test_the_words_that_a_parameter_may_be(function: Callable[..., Any], name: str, expected: tuple[str, ...]) -> None:
    found = choices(function, inspect.signature(function).parameters[name])
    assert set(found) == set(expected)


def test_members_of_an_enum() -> None:
    parameter = inspect.Parameter("colour", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Colour)
    assert choices(annotated, parameter) == ("Colour.RED", "Colour.BLUE")


MAIN = (2, 16, 64)
ADAPTED = [
    (MAIN, "Given groups=1, weight of size [8, 4, 3], expected input[2, 16, 64] to have 4 channels, but got 16", (2, 4, 64)),
    (MAIN, "weight of size [8, 4, 3, 3], expected input[1, 2, 16, 64] to have 4 channels, but got 2 channels", (2, 4, 8, 64)),
    (MAIN, "mat1 and mat2 shapes cannot be multiplied (32x64 and 24x8)", (2, 16, 24)),
    (MAIN, "mat1 and mat2 shapes cannot be multiplied (128x16 and 24x8)", (2, 24, 64)),
    (MAIN, "Given normalized_shape=[4, 24], expected input with shape [*, 4, 24], but got", (2, 16, 24)),
    (MAIN, "input.size(-1) must be equal to input_size. Expected 24, got 64", (2, 16, 24)),
    (MAIN, "einsum(): the number of subscripts in the equation (4) does not match the number of dimensions (3) for", (2, 16, 8, 64)),
    (MAIN, "einsum(): subscript n has size 32 for operand 1 which does not broadcast with previously seen size 16", (2, 32, 64)),
    (MAIN, "running_mean should contain 16 elements not 24", (2, 24, 64)),
    (MAIN, "not enough values to unpack (expected 5, got 3)", (2, 16, 8, 8, 64)),
    (MAIN, "too many values to unpack (expected 2)", (2, 64)),
    (MAIN, "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2, 16, 64]", (2, 16, 8, 64)),
    (MAIN, "Wrong shape: expected 4 dims. Received 3-dim tensor.", (2, 16, 8, 64)),
    (MAIN, "too many indices for tensor of dimension 3", (2, 16, 8, 64)),
    (MAIN, "Shape mismatch, can't divide axis of length 16 in chunks of 64", (2, 64, 64)),
    ((2, 16), "not enough values to unpack (expected 3, got 2)", (2, 16, 8)),
    (MAIN, "mat1 and mat2 shapes cannot be multiplied (7x7 and 64x8)", ()),
    (MAIN, "KeyError: 3", ()),
]


@pytest.mark.parametrize(("shape", "error", "expected"), ADAPTED)
def test_errors_say_which_shape_is_wanted(shape: tuple[int, ...], error: str, expected: tuple[int, ...]) -> None:
    assert adapted_shape(shape, error) == expected


TEXTS: list[tuple[Value, str]] = [
    (Tensor((2, 16)), "torch.randn(2, 16)"),
    (Tensor(()), "torch.randn(())"),
    (Tensor((2,), "integer", 9), "torch.randint(0, 9, (2,))"),
    (Tensor((2, 3), "bool"), "torch.ones((2, 3), dtype=torch.bool)"),
    (Tensor((2, 3), "false"), "torch.zeros((2, 3), dtype=torch.bool)"),
    (Tensor((2, 3), "complex"), "torch.randn(2, 3, dtype=torch.complex64)"),
    (Sequence((Tensor((2,), "positive"),), "()"), "(torch.rand(2),)"),
    (Fields((("x", "64"),)), "{'x': 64}"),
    (Fields((("x", "64"), ("y", "True")), "namespace"), "types.SimpleNamespace(x=64, y=True)"),
]


@pytest.mark.parametrize(("value", "expected"), TEXTS)
def test_values_as_source(value: Value, expected: str) -> None:
    assert text(value) == expected


def test_call_sites_are_read_with_the_names_around_them(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "WIDTH = 8\nclass Net(Module):\n def __init__(self, dim, depth=3):\n  inner = dim * 2\n"
        "  self.block = Block(inner, heads=depth, width=WIDTH, other=unknown(dim))\n"
    )
    block = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("dim", "heads", "width", "other")]
    assert call_sites([file], "Block", block, ()) == [{"dim": "64 * 2", "heads": "3", "width": "8"}]


def test_call_sites_have_numbers_for_what_unknown_objects_hold(tmp_path: Path) -> None:
    """A parameter of which nothing is known is no number where its attributes are read; what its methods give stays open."""
    file = tmp_path / "net.py"
    file.write_text(
        "def build(dataset, hidden):\n first = Embedding(dataset.words.count, hidden)\n"
        " return Net(first, Head(dataset.width, hidden), Table(dataset.rows()), args.size)\n"
    )
    parts = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("first", "head", "table", "size")]
    (site,) = call_sites([file], "Net", parts, ("Embedding", "Head", "Table"))
    assert site == {"first": "Embedding(64, 64)", "head": "Head(32, 64)"}


def test_call_sites_do_without_what_nothing_is_known_of(tmp_path: Path) -> None:
    file = tmp_path / "nets.py"
    file.write_text(
        "def build(params, args):\n pool = params.get('pool', 'mean')\n return Net(pool, getattr(args, 'width', 8 * 2), params.get('depth', 5))\n"
        "def other():\n params = {'pool': 'max'}\n return Net(params.get('pool', 'mean'), 4, 3)\n"
    )
    parts = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("pool", "width", "depth")]
    assert call_sites([file], "Net", parts, (), Program(settings={"depth": "2"})) == [
        {"pool": "'mean'", "width": "8 * 2", "depth": "2"},
        {"pool": "{'pool': 'max'}.get('pool', 'mean')", "width": "4", "depth": "3"},
    ]


def test_call_sites_are_followed_through_the_constructor_around_them(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "class Net(Module):\n def __init__(self, g, width):\n  self.part = Part(g, width, k=3)\n"
        "class Part(Module):\n def __init__(self, g, w, k):\n  self.inner = Inner(g * k, w)\nnet = Net(8, width=16)\n"
    )
    inner = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("size", "width")]
    assert call_sites([file], "Inner", inner, ()) == [{"size": "8 * 3", "width": "16"}]


def test_call_sites_keep_to_what_the_constructor_around_them_asserts(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "class Net(Module):\n def __init__(self, depth, k=1):\n  assert (depth - 4) % 6 == 0\n  self.part = Part((depth - 4) / 6, k)\n"
    )
    (tmp_path / "train.py").write_text("net = Net(args.layers, 10)\n")
    part = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("count", "k")]
    program = Program(settings={"layers": "2"})
    assert call_sites([tmp_path / "net.py", tmp_path / "train.py"], "Part", part, (), program) == [{"count": "(10 - 4) / 6", "k": "10"}]


@pytest.mark.parametrize(
    ("body", "values", "expected"),
    [
        ("assert (depth - 4) % 6 == 0", {"depth": 2}, [10, 16]),
        ("assert depth % 3 == 1 and depth > 5", {"depth": 2}, [7, 10]),
        ("if (depth - 2) % 9:\n  raise ValueError(depth)", {"depth": 2}, [11, 20]),
        ("assert depth % heads == 0", {"depth": 2, "heads": 4}, [4, 8]),
        ("assert depth // heads == 0", {"depth": 2, "heads": 4}, [2, 3]),
        ("assert depth in TABLE", {"depth": 2}, []),
        ("assert len(depth) == 2", {"depth": 2}, []),
        ("assert heads == 4", {"depth": 2, "heads": 4}, []),
        ("assert depth / 0 == 1", {"depth": 2}, []),
    ],
)
def test_numbers_that_fit_what_is_asserted(body: str, values: dict[str, int], expected: list[int]) -> None:
    tests = conditions(list(ast.walk(ast.parse(f"def f(depth, heads):\n {body}"))))
    assert list(fitting(tests, "depth", values))[:2] == expected


def test_call_sites_read_a_name_as_it_was_bound_last(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("model = Net(3)\nmodel = Wrapper(model)\nmodel = Outer(model, cfg['width'])\n")
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("net", "width")]
    known, program = {"Net", "Wrapper"}, Program(settings={"width": "8"})
    assert call_sites([file], "Wrapper", parameters, known) == [{"net": "Net(3)"}]
    assert call_sites([file], "Outer", parameters, known, program) == [{"net": "Wrapper(Net(3))", "width": "8"}]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("ValueError: unknown law 'x'. Use one of: ['gauss', 'laplace']", ["x", "gauss", "laplace"]),
        ("ValueError: mode must be one of mean, sum or none", ["mean", "sum", "none"]),
        ("ValueError: Supported activations: relu | gelu", ["relu", "gelu"]),
        ("ValueError: choose from (up, down)", ["up", "down"]),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x64 and 24x8)", []),
        ("NotImplementedError: ", []),
    ],
)
def test_words_that_an_error_allows(error: str, expected: list[str]) -> None:
    assert spelled_words(error) == expected


def test_call_sites_leave_out_classes_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "baseline.py").write_text("class Net:\n    def __init__(self, depth): ...\n\nnet = Net(3)\n")
    (tmp_path / "other.py").write_text("from package.models import Net\n\nnet = Net([2, 2])\n")
    (tmp_path / "train.py").write_text("from baseline import Net\n\nnet = Net(5)\n")
    files = [tmp_path / name for name in ("other.py", "baseline.py", "train.py")]
    depth = inspect.Parameter("depth", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert call_sites(files, "Net", [depth], ()) == [{"depth": "3"}, {"depth": "5"}]


class Scaled(nn.Module):
    def __init__(self, mean: torch.Tensor) -> None:
        self.register_buffer("mean", mean)


class Embedded(nn.Module):
    def __init__(self, weights: Any, width: Any, statistics: Any, rate: Any) -> None:
        self.words = nn.Embedding(64, width)
        self.words.weight.data.copy_(torch.tensor(weights, dtype=torch.float))
        self.scale = Scaled(statistics)
        self.rate = torch.tensor(rate)


@pytest.mark.parametrize(("name", "tensors"), [("weights", True), ("statistics", True), ("width", False), ("rate", False)])
def test_constructor_parameters_that_become_tensors(name: str, tensors: bool) -> None:
    assert bool(tensor_texts(Embedded, name)) is tensors


@pytest.mark.parametrize(
    ("model", "script", "expected"),
    [
        (  # what is unpacked is an item of what it is unpacked from; a word for what is compared with words; a table of the unit's own file by its name
            "TABLE = {'300': [4, 6]}\ndef parts(widths, words): ...\nclass Net:\n def __init__(self, phase, base, head): ...\n"
            "def build(phase, size=300, words=21):\n if phase != 'test' and phase != 'train':\n  return\n"
            " base, head = parts(TABLE[str(size)], words)\n return Net(phase, base, head)\n",
            "",
            [
                {"phase": repr(phase), "base": "parts(TABLE[str(300)], 21)[0]", "head": "parts(TABLE[str(300)], 21)[1]"}
                for phase in ("test", "train")
            ],
        ),
        (  # layers that another file makes at its top, and a part of them
            "import torch.nn as nn\nWIDTH = 3\nfront = nn.Sequential(nn.Conv2d(WIDTH, 3, 1), nn.ReLU())\nclass Net:\n def __init__(self, phase, base, head): ...\n",
            "import torch.nn as nn\nimport net\nfrom net import front\nbase = net.front\nbase.load(args.path)\nbase = nn.Sequential(*list(base.children())[:1])\n"
            "model = net.Net(0, base, front)\n",
            [
                {
                    "phase": "0",
                    "base": "nn.Sequential(*list(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()).children())[:1])",
                    "head": "nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU())",
                }
            ],
        ),
        (  # what is no layer keeps its name, and is imported
            "import argparse, tables\nargs = argparse.ArgumentParser().parse_args()\n"
            "class Net:\n def __init__(self, phase, base, head): ...\nmodel = Net(args, tables.WIDTHS, tables.make(2))\n",
            "",
            [{"base": "tables.WIDTHS", "head": "tables.make(2)"}],
        ),
    ],
)
def test_call_sites_name_what_the_repository_makes_elsewhere(
    model: str, script: str, expected: list[dict[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "net.py").write_text(model)
    (tmp_path / "train.py").write_text(script)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("phase", "base", "head")]
    program = Program({tmp_path / "net.py": "net", tmp_path / "train.py": "train", tmp_path / "tables.py": "tables"})
    scope = {"nn", "TABLE", "parts", "front", "tables", "WIDTH"}
    assert call_sites([tmp_path / "net.py", tmp_path / "train.py"], "Net", parameters, scope, program) == expected


class Part(nn.Module):
    def __init__(self, size: int, deep: int, rate: float = 0.1) -> None:
        super().__init__()


class Whole(nn.Module):
    def __init__(self, width: int, **kwargs: Any) -> None:
        super().__init__()
        self.parts = nn.ModuleList([Part(width, 2, **kwargs), Part(width, deep=3, **kwargs)])


def test_keywords_that_are_handed_on_are_those_that_no_place_gives() -> None:
    assert [parameter.name for parameter in constructor_parameters(Whole)] == ["width", "rate"]


def test_call_sites_are_read_in_notebooks(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["Net(1)"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "from elsewhere import Prior\n", "width = 8\n"]},
        {"cell_type": "code", "source": ["not python here\n"]},
        {"cell_type": "code", "source": ["net = Net(Prior(width), 2 * width)\n"]},
    ]
    (tmp_path / "shown.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "broken.ipynb").write_text("{}")
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("prior", "size")]
    files = notebooks(tmp_path)
    program = Program(dict.fromkeys(files, ""))
    assert call_sites(files, "Net", parameters, (), program) == [{"prior": "Prior(8)", "size": "2 * 8"}]
    assert program.imports == {"Prior": "from elsewhere import Prior"}
