"""A small problem for optimizers, in both frameworks: parameters of several shapes, gradients with rows of zeros, and a rate that changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from flax import nnx

from migrate_agent.tools.programs.tables.registry import Text
from migrate_agent.tools.rewrite.tables.helpers import render
from migrate_agent.tools.weights import leaves, load_state_dict, variable_paths

STEPS = 50


class Model(nnx.Module):
    """Parameters with one, two and three axes, in NNX's layouts."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(6, 4, rngs=rngs)
        self.fc = nnx.Linear(4, 3, rngs=rngs)
        self.conv = nnx.Conv(2, 3, (2,), rngs=rngs)


def randomised(module: Any) -> Any:
    """A module with random weights in float64, always the same."""
    rng = np.random.default_rng(0)
    load_state_dict(module, {name: rng.normal(size=leaf.shape) for name, leaf in leaves(module).items()})
    return module


def noise(module: nnx.Module, steps: int = STEPS) -> dict[str, np.ndarray[Any, Any]]:
    """Torch's name → the part of the gradient that comes from the batch, float64 (steps, …); rows of the embedding are zero."""
    rng = np.random.default_rng(1)
    drawn = {name: rng.normal(size=(steps, *leaf.shape)) for name, leaf in leaves(module).items()}
    drawn["embed.weight"][:, 4:] = 0
    drawn["embed.weight"][::2, 2:] = 0
    return drawn


def pull(name: str) -> float:
    """How strongly a gradient depends on its parameter; not at all where rows must stay without gradient."""
    return 0.0 if name.startswith("embed") else 0.5


def torch_parameters(module: nnx.Module) -> dict[str, torch.nn.Parameter]:
    """Torch's name → parameter."""
    return {name: torch.nn.Parameter(torch.from_numpy(leaf.to_torch(leaf.variable.get_value()))) for name, leaf in leaves(module).items()}


def torch_gradients(params: dict[str, torch.nn.Parameter], drawn: dict[str, np.ndarray[Any, Any]], step: int) -> None:
    """Set the gradients of a step."""
    for name, parameter in params.items():
        parameter.grad = torch.from_numpy(drawn[name][step].copy()) + pull(name) * parameter.detach()


def gradients(module: nnx.Module, drawn: dict[str, Any]) -> nnx.State[Any, Any]:
    """The gradients of a step as `nnx.grad` gives them."""
    state = nnx.state(module, nnx.Param)
    names = {path: name for name, path in variable_paths(module).items()}
    flat = {}
    for path, variable in nnx.to_flat_state(state):
        name = names[".".join(map(str, path))]
        value, axes = jnp.asarray(drawn[name]), leaves(module)[name].axes
        value = value if axes is None else value.transpose(np.argsort(axes))
        flat[path] = variable.replace(value + pull(name) * variable.get_value())
    return nnx.from_flat_state(flat)


@nnx.jit
def train_step(module: Model, optimizer: nnx.Optimizer[Model], drawn: dict[str, Any]) -> None:
    """One update."""
    optimizer.update(module, gradients(module, drawn))


def evaluate(text: Text, **names: Any) -> Any:
    """The value of a row's text, with its helpers as the target gets them."""
    scope: dict[str, Any] = {"jax": jax, "jnp": jnp, "optax": optax, **names}
    if text.helpers:
        exec(compile(render(text.helpers), "helpers", "exec"), scope)
    return eval(text.code, scope)


def deviation(module: nnx.Module, params: dict[str, torch.nn.Parameter]) -> float:
    """The largest difference of a parameter, relative to the largest value of all."""
    scale = max(float(parameter.detach().abs().max()) for parameter in params.values())
    pairs = [(leaf.to_torch(leaf.variable.get_value()), params[name].detach().numpy()) for name, leaf in leaves(module).items()]
    return max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs) / scale


@contextmanager
def double_precision() -> Iterator[None]:
    """float64 in both frameworks."""
    torch.set_default_dtype(torch.float64)
    try:
        with jax.enable_x64(True):
            yield
    finally:
        torch.set_default_dtype(torch.float32)
