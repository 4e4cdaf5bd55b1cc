"""The whole way on small modules in many idioms: scan, record, compose, and outputs and gradients as torch's, in float64."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.sandbox import open_sandbox
from migrate_agent.tests.sampling import first_quick
from migrate_agent.tools.harness.common.example_text import call_arguments, construct, load_unit, make_namespace
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose, translate
from migrate_agent.tools.rewrite.assemble.formatting import format_python
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Example, Inventory, Recording
from migrate_agent.tools.weights import load_state_dict, state_dict
from tests.tools.rewrite.snippets import snippet_workspace

FIXTURES = Path(__file__).with_name("fixtures")
CALLS = {
    "InplaceViews": ("6", "torch.randn(3, 6)"),
    "Buffers": ("6", "torch.randn(3, 6)"),
    "Recurrent": ("4, 5", "torch.randn(2, 7, 4)"),
    "ResBlock": ("4, 8, 2", "torch.randn(2, 4, 8, 8)"),
    "Rotary": ("8", "torch.randn(2, 5, 8)"),
    "Lists": ("6", "torch.randn(3, 6)"),
    "TensorIf": ("6", "torch.randn(3, 6)"),
    "MHA": ("8, 2", "torch.randn(2, 5, 8)"),
    "Encoder": ("8, 2, 2", "torch.randn(2, 5, 8)"),
    "Custom": ("6", "torch.randn(3, 6)"),
    "Tied": ("11, 6", "torch.randint(0, 11, (2, 3))"),
    "MaskFill": ("", "torch.randn(3, 6), torch.rand(3, 6) > 0.5"),
    "SelectedSum": ("", "torch.randn(3, 6), torch.rand(3, 6) > 0.5"),
    "AskedMode": ("6", "torch.randn(3, 6)"),
    "UNetish": ("4", "torch.randn(2, 4, 8, 8)"),
    "BranchHelper": ("6", "torch.randn(3, 6)"),
    "Expanded": ("", "torch.randn(2, 3, 1, 4)"),
    "Outer": ("8", "torch.randn(3, 5, 8)"),
    "Gathered": ("6", "torch.randn(3, 6)"),
    "HandedArrays": ("2, [torch.eye(3), torch.ones(3, 3)], 6", "torch.randn(3, 6)"),
}
"""Class → what stands between the parentheses of its constructor and of its call."""


@dataclass(frozen=True)
class Migrated:
    """The fixture's repository, what was recorded of it, and the composed mirror on `sys.path`."""

    inventory: Inventory
    recording: Recording
    files: dict[str, str]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Migrated]:
    root, mirror = tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("mirror")
    shutil.copy(FIXTURES / "cases.py", root)
    inventory = scan(root)
    examples = [Example(f"cases.py:{name}", init, call) for name, (init, call) in CALLS.items()]
    with open_sandbox("process", warn=lambda text: None) as sandbox:  # type: ignore[attr-defined]
        recording = record(inventory, examples, sandbox, tmp_path_factory.mktemp("recording"))
    assert not recording.errors
    draft = compose(inventory, recording.observations, [example.unit for example in examples], examples=recording.examples)
    assert not draft.holes
    for path, text in draft.files.items():
        (mirror / path).write_text(text)
    before = sys.path[:]
    sys.path[:0] = [str(root), str(mirror)]
    _forget()
    with jax.enable_x64(True):
        yield Migrated(inventory, recording, dict(draft.files))
    sys.path[:] = before
    _forget()


def _forget() -> None:
    """Modules of these names, which other tests import from elsewhere."""
    for name in ("cases", "cases_jax", "nnx_layers_jax"):
        sys.modules.pop(name, None)


def _to_jax(value: Any) -> Any:
    return jnp.asarray(value.detach().numpy()) if isinstance(value, torch.Tensor) else value


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


@pytest.mark.parametrize("name", first_quick(12, CALLS))
def test_outputs_and_gradients_are_those_of_torch(migrated: Migrated, name: str) -> None:
    example = next(e for e in migrated.recording.examples if e.unit == f"cases.py:{name}" and e.origin == "config")
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    try:
        namespace = make_namespace(importlib.import_module("cases"), example)
        module = construct(load_unit("cases", name), example, namespace).double().eval()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        arguments = [_double(value) for value in call_arguments(example, namespace)[0]]
        expected = [leaf for leaf in torch.utils._pytree.tree_leaves(module(*arguments)) if isinstance(leaf, torch.Tensor)]
        loss = sum((leaf.sum() for leaf in expected if leaf.requires_grad), torch.zeros(()))
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
    finally:
        torch.set_default_dtype(torch.float32)
    port = _port(migrated, example, name)
    load_state_dict(port, {key: value.numpy() for key, value in module.state_dict().items()})
    port.eval()
    inputs = [_to_jax(value) for value in arguments]
    got = jax.tree.leaves(nnx.jit(lambda model, values: model(*values))(port, inputs))
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-9, atol=1e-11)
    _compare_gradients(port, module, inputs)


def test_sizes_that_are_never_below_zero_are_those_of_a_shape(migrated: Migrated) -> None:
    """-1 in `expand` keeps the size of an axis, which `jnp.broadcast_to` does not know."""
    text = migrated.files["cases_jax.py"].partition("class Expanded(")[2].partition("\nclass ")[0]
    assert "jnp.broadcast_to(x, (batch, heads, 5, width))" in text
    assert "jnp.broadcast_to(x[0], (batch, x.shape[1], heads + 2, width))" in text
    assert text.count("broadcast_to") == 2


def _port(migrated: Migrated, example: Example, name: str) -> Any:
    translated = translate(migrated.inventory, migrated.recording.observations, example)
    mirror = importlib.import_module("cases_jax")
    namespace = {**vars(mirror), "jax": jax, "jnp": jnp, "nnx": nnx, "rngs": nnx.Rngs(0)}
    exec(translated.setup, namespace)
    return eval(f"_unit({translated.init})", {**namespace, "_unit": getattr(mirror, name)})


def _compare_gradients(port: Any, module: torch.nn.Module, inputs: list[Any]) -> None:
    wanted = {key: parameter.grad.numpy() for key, parameter in module.named_parameters() if parameter.grad is not None}
    if not wanted:
        return

    def loss(model: Any) -> jax.Array:
        leaves = [leaf for leaf in jax.tree.leaves(model(*inputs)) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return sum((leaf.sum() for leaf in leaves), jnp.zeros(()))

    gradients = nnx.jit(nnx.grad(loss))(port)
    nnx.update(port, gradients)
    found = state_dict(port)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-8, atol=1e-10, err_msg=key)


def test_generated_code_is_left_alone(migrated: Migrated, tmp_path: Path) -> None:
    text = migrated.files["cases_jax.py"]
    space = snippet_workspace(tmp_path, text)
    again = "".join(statement.text for statement in space.statements("snippet.py"))
    assert format_python({"again.py": again})["again.py"] == format_python({"again.py": text})["again.py"]
    assert not space.rewritten("snippet.py").holes


def test_generated_code_names_no_torch(migrated: Migrated) -> None:
    assert all("import torch" not in text for text in migrated.files.values())
