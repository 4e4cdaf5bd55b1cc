"""Idioms of model families, the whole way: values after construction, outputs, gradients and state as torch's, in float64."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.evals.operators.parity import compare_modules, randomise
from migrate_agent.sandbox import open_sandbox
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Example
from migrate_agent.tools.weights import state_dict

FIXTURES = Path(__file__).with_name("fixtures")
CALLS = {
    "Weights": ((6,), "6", "torch.randn(3, 6)", torch.linspace(-1, 1, 18).reshape(3, 6)),
    "Head": ((7, 6), "7, 6", "torch.randint(0, 7, (2, 3))", torch.tensor([[0, 3, 6], [1, 1, 5]])),
    "Norm": ((6,), "6", "torch.randn(3, 6)", torch.linspace(-1, 1, 18).reshape(3, 6) ** 3),
    "Sinusoids": ((5, 4), "5, 4", "torch.randn(2, 5, 4)", torch.linspace(-1, 1, 40).reshape(2, 5, 4)),
}
"""Class → its constructor's arguments, the same as text, the call as text, and the input to compare on."""
SET = ("Weights", "Sinusoids")
"""Classes whose constructors set all that matters."""


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Draft]:
    root, mirror = tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("mirror")
    shutil.copy(FIXTURES / "families.py", root)
    inventory = scan(root)
    examples = [Example(f"families.py:{name}", init, call) for name, (_, init, call, _) in CALLS.items()]
    with open_sandbox("process", warn=lambda text: None) as sandbox:  # type: ignore[attr-defined]
        recording = record(inventory, examples, sandbox, tmp_path_factory.mktemp("recording"))
    assert not recording.errors
    draft = compose(inventory, recording.observations, [example.unit for example in examples], examples=recording.examples)
    for path, text in draft.files.items():
        (mirror / path).write_text(text)
    before = sys.path[:]
    sys.path[:0] = [str(root), str(mirror)]
    with jax.enable_x64(True):
        yield draft
    sys.path[:] = before
    for name in ("families", "families_jax", "nnx_layers_jax"):
        sys.modules.pop(name, None)


def _pair(name: str) -> tuple[torch.nn.Module, Any]:
    arguments = CALLS[name][0]
    original = getattr(importlib.import_module("families"), name)(*arguments).double().eval()
    rewrite = getattr(importlib.import_module("families_jax"), name)(*arguments, rngs=nnx.Rngs(0))
    rewrite.eval()
    return original, rewrite


def test_nothing_is_left_open(draft: Draft) -> None:
    assert not draft.holes
    assert "open(" not in draft.files["families_jax.py"]
    assert any("save" in note for note in draft.notes)
    assert any("TORCH_HOME" in note for note in draft.notes)


@pytest.mark.parametrize("name", SET)
def test_constructors_set_the_same_values(draft: Draft, name: str) -> None:
    original, rewrite = _pair(name)
    found = state_dict(rewrite)
    for key, value in original.state_dict().items():
        np.testing.assert_allclose(found[key], value.numpy(), err_msg=key)


@pytest.mark.parametrize("name", CALLS)
def test_outputs_gradients_and_state_are_those_of_torch(draft: Draft, name: str) -> None:
    original, rewrite = _pair(name)
    randomise(original)
    value = CALLS[name][3]
    compare_modules(original, rewrite, (value.double() if value.is_floating_point() else value,), {})
