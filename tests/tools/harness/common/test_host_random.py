"""Which modules are a job's own, whose draws on the host are noticed, and which draws come from the stream."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from migrate_agent.tools.harness.common import host_random
from migrate_agent.tools.harness.common.random_streams import HOST, Stream, beta


@pytest.mark.parametrize(
    ("prefix", "own"),
    [
        ("elsewhere", {"mine", "installed", "beside"}),
        ("repository/.venv", {"mine", "beside"}),  # the environment lies in the repository
        (".", {"mine", "installed", "beside"}),  # the repository lies in the environment
    ],
)
def test_what_is_installed_in_the_repository_is_not_its_own(
    prefix: str, own: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "repository"
    files = {"mine": "m.py", "installed": ".venv/lib/i.py", "beside": ".venv_of_mine/b.py"}
    for name, file in files.items():
        module = types.ModuleType(f"host_random_{name}")
        module.__file__ = str(root / file)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    monkeypatch.setattr(sys, "prefix", str((tmp_path / prefix).resolve()))
    host_random._imported_from.cache_clear()
    names = {module.__name__.removeprefix("host_random_") for module in host_random.own_modules()}
    host_random._imported_from.cache_clear()
    assert names == own


def test_numbers_come_from_the_stream() -> None:
    stream, again = Stream(3), Stream(3)
    with host_random.paired(stream):
        drawn = [np.random.beta(0.4, 2.0), random.betavariate(0.4, 2.0), np.random.exponential(2.0), np.random.choice(5)]
        mask, chosen = np.random.binomial(n=1, p=0.7, size=(2, 1)), np.random.choice([3.0, 4.0, 5.0], 2, replace=False)
    expected = [beta(again.draw("beta", ()), 0.4, 2.0) for _ in range(2)]
    expected += [2 * again.draw("exponential", ()), int(5 * again.draw("integers", ()))]
    assert drawn == pytest.approx([float(value) for value in expected])
    order = again.draw("permutation", (3,)).astype(int)
    assert mask.tolist() == [[1], [1]]
    assert mask.dtype == int
    assert chosen.tolist() == [[3.0, 4.0, 5.0][place] for place in order[:2]]
    assert ["bernoulli", [2, 1], 0.7] in stream.log()
    assert all(kind != HOST for kind, *_ in stream.log())


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.binomial(3, 0.5),
        lambda: np.random.binomial(1, np.array([0.2, 0.8])),
        lambda: np.random.beta(np.ones(2), 1.0),
        lambda: np.random.choice(3, p=[0.2, 0.3, 0.5]),
        lambda: np.random.dirichlet([1.0, 1.0]),
    ],
)
def test_what_cannot_be_paired_is_noted(draw: Callable[[], object]) -> None:
    stream = Stream(3)
    with host_random.paired(stream):
        draw()
    assert [row[0] for row in stream.log()] == [HOST]


def test_parameters_of_the_beta_distribution_change_its_number() -> None:
    numbers = {round(float(beta(0.3, a, b)), 6) for a in (0.2, 1.0, 3.0) for b in (0.2, 1.0, 3.0)}
    assert len(numbers) == 9
    assert all(0 < number < 1 for number in numbers)
