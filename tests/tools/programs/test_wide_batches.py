"""What the judge's side of the candidate does to arrays on their way into and out of compiled code."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from migrate_agent.tools.programs.judge.candidate import _hand_over_arrays, _widen_batches

TEXT = """
import numpy as np


class DataLoader:
    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)
"""


@pytest.fixture
def loaders(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of a program that has a loader."""
    module = ModuleType("program_of_a_test")
    exec(TEXT, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_batches_are_as_wide_as_torchs(loaders: Any) -> None:
    """Also those of a loader that was there before; what is no float32 of NumPy stays."""
    single, whole = np.ones(2, np.float32), np.ones(2, np.int64)
    loader = loaders.DataLoader([[single, {"x": single, "n": whole}, "text"]])
    _widen_batches()
    _widen_batches()
    ((first, rest, text),) = loader
    assert first.dtype == rest["x"].dtype == np.float64
    assert rest["n"] is whole
    assert text == "text"
    assert len(loader) == 1


def test_callbacks_get_what_the_runtime_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """No copy of it waits for a thread that the program computes in."""
    debugging: Any = importlib.import_module("jax._src.debugging")
    monkeypatch.setattr(debugging, "api", debugging.api)
    _hand_over_arrays()
    kinds: list[type] = []

    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda values: kinds.extend(map(type, values.values())), {"a": x, "b": x @ x}, ordered=True)
        return x.sum()

    assert float(step(jnp.ones((600, 600)))) == 360_000
    barrier: Any = jax.effects_barrier
    barrier()
    assert len(kinds) == 2
    assert not any(issubclass(kind, jax.Array) for kind in kinds)
