"""Factories of a repository are run up to the constructor, and their arguments become a first guess."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate_agent.tools.record.guessing.factories import made_by_factories
from migrate_agent.tools.record.guessing.rows import parameter_texts
from migrate_agent.tools.record.guessing.trials.trial import Trial

SOURCE = """
import collections
import torch
from torch import nn

Part = collections.namedtuple("Part", "width repeats")
TABLE = {"small": (1.0, 4), "wide": (2.0, 8)}


def parts(factor, width):
    return [Part(int(width * factor), repeats) for repeats in (1, 2)]


class Net(nn.Module):
    def __init__(self, parts, heads=2, *, scale=1.0):
        super().__init__()
        self.parts, self.heads, self.scale = parts, heads, scale

    @classmethod
    def from_name(cls, name):
        factor, width = TABLE[name]
        return cls(parts(factor, width), heads=width // 2)

    @classmethod
    def from_pretrained(cls, name):
        raise RuntimeError("it would load a file")


class Wider(Net):
    pass


class Literal(nn.Module):
    def __init__(self, width):
        super().__init__()


class Lazy(nn.Module):
    def __init__(self, table):
        super().__init__()


class Hidden(nn.Module):
    def __init__(self, weights):
        super().__init__()


class Failing(nn.Module):
    def __init__(self, sizes):
        super().__init__()


def literal():
    return Literal(3)


def wider():
    return Wider(parts(1.0, 2))


def lazy(depth=3):
    try:
        return Lazy({str(at): at for at in range(depth)})
    except Exception:
        return None


def hidden():
    return Hidden(torch.zeros(2) + 1)


def failing():
    raise SystemExit(2)
    return Failing([2] * 2)
"""

PARTS = "[Part(width=4, repeats=1), Part(width=4, repeats=2)]"
CASES = [
    ("Net", [{"parts": PARTS, "heads": "2"}, {"parts": PARTS.replace("4", "16"), "heads": "4"}]),
    ("Wider", [{"parts": "[Part(width=2, repeats=1), Part(width=2, repeats=2)]"}]),
    ("Lazy", [{"table": "{'0': 0, '1': 1, '2': 2}"}]),
    ("Literal", []),  # its text is enough
    ("Hidden", []),  # tensors have no text
    ("Failing", []),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("factories")
    (folder / "factory_nets.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("factory_nets", None)


@pytest.mark.parametrize(("name", "expected"), CASES)
def test_arguments_of_factories(name: str, expected: list[dict[str, str]], root: Path) -> None:
    module = importlib.import_module("factory_nets")
    cls = getattr(module, name)
    constructor = cls.__init__
    rows = list(made_by_factories(Trial(cls, module, [str(root)]), root, lambda text: parameter_texts(text, "")))
    assert rows == expected
    assert cls.__init__ is constructor
