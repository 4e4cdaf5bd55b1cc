"""Notes on a line of the original become remarks on the line of the port that came of it, where the request adds that line."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate_agent.agent.forge.base import LineNote
from migrate_agent.agent.pr.build import Built
from migrate_agent.agent.pr.commits import Bench
from migrate_agent.agent.pr.notes import followed, remarks
from migrate_agent.agent.pr.run import Change
from migrate_agent.agent.pr.stack import Piece
from migrate_agent.agent.repository.git import open_repository
from migrate_agent.tests.agent.pr.sheets import sheet
from migrate_agent.tests.agent.pr.team import commit
from migrate_agent.tests.agent.repositories import repository

ORIGINAL = """import torch
from torch import nn


class Other(nn.Module):
    width = 3


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return torch.relu(x)
        return x
"""
PORT = """from flax import nnx
import jax


class Other(nnx.Module):
    width = 3


class Net(nnx.Module):
    def __call__(self, x):
        if x.sum() > 0:
            return jax.nn.relu(x)
        return x
"""


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        (
            ("model.py:11: this branch is run by no example",),
            [LineNote("model_jax.py", 11, "this branch is run by no example (`model.py:11`)")],
        ),
        (("model.py:12: on a line that was rewritten",), [LineNote("model_jax.py", 12, "on a line that was rewritten (`model.py:12`)")]),
        (("model.py:11: once", "model.py:11: once"), [LineNote("model_jax.py", 11, "once (`model.py:11`)")]),
        (("model.py:6: of another class",), []),
        (("other.py:11: of another file", "of no line", "model.py:99: beyond the end"), []),
    ],
)
def test_remarks(tmp_path: Path, notes: tuple[str, ...], expected: list[LineNote]) -> None:
    root = repository(tmp_path / "repo", {"model.py": ORIGINAL})
    opened = open_repository(root)
    base = opened.base().sha
    made = commit(root, {"model_jax.py": PORT})
    told = sheet(notes=notes, base=base)
    built = Built(Piece("pr/net", (Change(told, made),)), "main", base, made, (told,))
    assert list(remarks(Bench(opened, tmp_path / "scratch"), built)) == expected


def test_a_line_that_the_request_does_not_add_gets_no_remark(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo", {"model.py": ORIGINAL, "model_jax.py": PORT})
    opened = open_repository(root)
    base = opened.base().sha
    made = commit(root, {"model_jax.py": f"{PORT}\n\nx = 1\n"})
    told = sheet(notes=("model.py:11: this branch is run by no example",), base=base)
    built = Built(Piece("pr/net", (Change(told, made),)), "main", base, made, (told,))
    assert remarks(Bench(opened, tmp_path / "scratch"), built) == ()


def test_followed() -> None:
    assert followed("a\nb\nc\n", "new\na\nb\nc\n", 2) == 3
    assert followed("a\nb\nc\n", "a\nc\n", 2) == 0
    assert followed("x = f(1)\ny = g(2)\n", "y = jnp.g(2)\n", 2) == 1
