"""Migrates a folder of fixtures the whole way (scan, record, compose), and compares a class with torch's in float64."""

from __future__ import annotations

import importlib
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from migrate_agent.sandbox import open_sandbox
from migrate_agent.tools.harness.common.example_text import call_arguments, construct, in_mode, load_unit, make_namespace
from migrate_agent.tools.harness.jax_side.embeddings import follow_tables
from migrate_agent.tools.record import record
from migrate_agent.tools.rewrite import compose, translate
from migrate_agent.tools.scan import scan
from migrate_agent.tools.types import Draft, Example, Inventory, Recording
from migrate_agent.tools.weights import load_state_dict, state_dict

Calls = Mapping[str, tuple[str, str]]
"""Class → what stands between the parentheses of its constructor and of its call."""


@dataclass(frozen=True)
class Migrated:
    """The fixtures' repository, what was recorded of it, and the mirror."""

    inventory: Inventory
    recording: Recording
    draft: Draft

    def example(self, module: str, name: str) -> Example:
        """The example given for a class (not one recorded from another's)."""
        return next(e for e in self.recording.examples if e.unit == f"{module}.py:{name}" and e.origin == "config")


@contextmanager
def migrated(
    fixtures: Path, calls: Mapping[str, Calls], folder: Path, style: Literal["plain", "close"] = "close", scan_layers: bool = False
) -> Iterator[Migrated]:
    """The modules (name → its calls) of a folder, migrated; both trees are importable, and JAX has its 64-bit types."""
    root, mirror = folder / "repository", folder / "mirror"
    root.mkdir()
    for module in calls:
        shutil.copy(fixtures / f"{module}.py", root)
    inventory = replace(scan(root), style=style, scan_layers=scan_layers)
    examples = [Example(f"{module}.py:{name}", *texts) for module, some in calls.items() for name, texts in some.items()]
    with open_sandbox("process", warn=lambda text: None) as sandbox:  # type: ignore[attr-defined]
        recording = record(inventory, examples, sandbox, folder / "recording")
    assert not recording.errors
    draft = compose(inventory, recording.observations, [example.unit for example in examples], examples=recording.examples)
    for path, text in draft.files.items():
        (mirror / path).parent.mkdir(parents=True, exist_ok=True)
        (mirror / path).write_text(text)
    before = sys.path[:]
    sys.path[:0] = [str(root), str(mirror)]
    names = {*calls, *(f"{module}_jax" for module in calls), "nnx_layers_jax"}
    # Another mirror of this process may have left its helpers.
    _forget(names)
    with jax.enable_x64(True):
        yield Migrated(inventory, recording, draft)
    sys.path[:] = before
    _forget(names)


def _forget(names: Iterable[str]) -> None:
    for name in names:
        sys.modules.pop(name, None)


def compare(work: Migrated, module: str, name: str, training: bool = False) -> None:
    """Outputs, gradients of all parameters and floating inputs, and the state after the call are torch's, under `nnx.jit`."""
    example = work.example(module, name)
    with _double_precision():
        namespace = make_namespace(importlib.import_module(module), example)
        reference = in_mode(construct(load_unit(module, name), example, namespace).double(), training=training)
        with torch.no_grad():
            for parameter in reference.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        before = {key: value.numpy().copy() for key, value in reference.state_dict().items()}
        arguments = [_leaf(value) for value in call_arguments(example, namespace)[0]]
        inputs = [_to_jax(value) for value in arguments]
        expected = [leaf for leaf in torch.utils._pytree.tree_leaves(reference(*arguments)) if isinstance(leaf, torch.Tensor)]
        trained = [leaf.sin().sum() for leaf in expected if leaf.requires_grad]
        if trained:
            torch.stack(trained).sum().backward()  # type: ignore[no-untyped-call]
    port = _port(work, module, name, example)
    load_state_dict(port, before)
    port.train() if training else port.eval()
    got, gradients, input_gradients = _run(port, inputs)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-9, atol=1e-11)
    _same_state(port, {key: value.detach().numpy() for key, value in reference.state_dict().items()}, "after the call")
    nnx.update(port, gradients)
    _same_state(port, {key: p.grad.numpy() for key, p in reference.named_parameters() if p.grad is not None}, "gradient")
    for position, value in input_gradients.items():
        grad = arguments[position].grad
        np.testing.assert_allclose(
            value, 0 if grad is None else grad.numpy(), rtol=1e-8, atol=1e-10, err_msg=f"gradient of input {position}"
        )


@contextmanager
def _double_precision() -> Iterator[None]:
    """Torch with float64 as its default, and without its warnings that an API has a successor or that there is no CUDA."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            for category in (FutureWarning, DeprecationWarning):
                warnings.simplefilter("ignore", category)
            warnings.filterwarnings("ignore", message="CUDA is not available")
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def _leaf(value: Any) -> Any:
    """A floating tensor in float64, of which a gradient is asked."""
    return value.double().requires_grad_() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _to_jax(value: Any) -> Any:
    return jnp.array(value.detach().numpy()) if isinstance(value, torch.Tensor) else value


def _port(work: Migrated, module: str, name: str, example: Example) -> Any:
    translated = translate(work.inventory, work.recording.observations, example)
    mirror = importlib.import_module(f"{module}_jax")
    namespace = {**vars(mirror), "jax": jax, "jnp": jnp, "nnx": nnx, "rngs": nnx.Rngs(0)}
    exec(translated.setup, namespace)
    port = eval(f"_unit({translated.init})", {**namespace, "_unit": getattr(mirror, name)})
    follow_tables(port)
    return port


def _run(port: Any, inputs: list[Any]) -> tuple[list[jax.Array], Any, dict[int, jax.Array]]:
    """Output leaves, gradients of the parameters and of the floating inputs; the port's state is that after the call."""
    arrays = {i: value for i, value in enumerate(inputs) if isinstance(value, jax.Array)}
    floating = {i: value for i, value in arrays.items() if jnp.issubdtype(value.dtype, jnp.floating)}

    def loss(model: Any, given: dict[int, jax.Array], others: dict[int, jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        leaves = jax.tree.leaves(model(*({**others, **given}.get(i, value) for i, value in enumerate(inputs))))
        differentiable = [jnp.sum(jnp.sin(leaf)) for leaf in leaves if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)]
        return sum(differentiable, jnp.zeros(())), leaves

    @nnx.jit
    def run(model: Any, given: dict[int, jax.Array], others: dict[int, jax.Array]) -> Any:
        return nnx.grad(loss, argnums=(0, 1), has_aux=True)(model, given, others)

    (gradients, of_inputs), leaves = run(port, floating, {i: value for i, value in arrays.items() if i not in floating})
    return leaves, gradients, of_inputs


def _same_state(port: Any, expected: Mapping[str, np.ndarray[Any, Any]], what: str) -> None:
    found = state_dict(port)
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-8, atol=1e-10, err_msg=f"{key}: {what}")
