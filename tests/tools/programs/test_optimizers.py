"""Every optimizer row × its options, 50 updates in float64 against torch itself: parameters, and the state into JAX and back."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

from migrate_agent.tests.tools.programs.problem import (
    STEPS,
    Model,
    deviation,
    double_precision,
    evaluate,
    noise,
    randomised,
    torch_gradients,
    torch_parameters,
    train_step,
)
from migrate_agent.tools.programs.optimizer_state import load_optimizer, save_optimizer
from migrate_agent.tools.programs.tables.arguments import parse_signature
from migrate_agent.tools.programs.tables.registry import DROPPED, Optimizer, optimizer_arguments, optimizer_text, optimizers
from migrate_agent.tools.programs.vendored.parameter_groups import in_torch_axes
from migrate_agent.tools.vendored.containers import LayerStack
from migrate_agent.tools.weights import leaves, variable_paths

CASES = [
    pytest.param(row, options, id=f"{name.rpartition('.')[2]}({options})", marks=[pytest.mark.slow] if i > 1 else [])
    for name, row in optimizers().items()
    for i, options in enumerate(row.options)
]


class Matrices(Model):
    """The parameters that Muon takes."""

    def __init__(self) -> None:
        super().__init__(nnx.Rngs(0))
        del self.conv
        self.fc.bias = None


def rate(step: Any) -> Any:
    """A rate that changes with every update."""
    return 0.02 * 0.97**step


def transform(row: Optimizer, options: str, module: nnx.Module) -> Any:
    """The optax form of the row, from its text."""
    arguments = optimizer_arguments(row.name, f"f(p, lr=rate{', ' + options if options else ''})")
    made = evaluate(optimizer_text(row.name, arguments), rate=rate)
    if not row.axes:
        return made
    paths = variable_paths(module)
    return in_torch_axes(made, {paths[name]: leaf.axes for name, leaf in leaves(module).items() if leaf.axes})


@pytest.mark.parametrize(("row", "options"), CASES)
def test_updates_and_state_are_torchs(row: Optimizer, options: str) -> None:
    with double_precision():
        module = randomised(Matrices() if row.name == "torch.optim.Muon" else Model(nnx.Rngs(0)))
        drawn, params = noise(module), torch_parameters(module)
        make = getattr(torch.optim, row.name.rpartition(".")[2])
        original = make(params.values(), lr=rate(0), **eval(f"dict({options})"))
        tx = transform(row, options, module)
        optimizer = nnx.Optimizer(module, tx, wrt=nnx.Param)
        start = {name: parameter.detach().numpy().copy() for name, parameter in params.items()}
        for step in range(STEPS):
            if step == STEPS // 2:
                # The second half goes on from what torch saved.
                optimizer = nnx.Optimizer(module, tx, wrt=nnx.Param)
                load_optimizer(optimizer, module, row.name, as_numpy(original.state_dict()), [list(params)], updates=step)
            original.param_groups[0]["lr"] = rate(step)
            torch_gradients(params, drawn, step)
            original.step()
            train_step(module, optimizer, {name: array[step] for name, array in drawn.items()})
        assert deviation(module, params) <= row.limit
        assert max(np.abs(params[name].detach().numpy() - start[name]).max() for name in start) > 1e-3
        groups = original.state_dict()["param_groups"]
        saved = save_optimizer(optimizer, module, row.name, groups, [list(params)])
        same_state(saved["state"], as_numpy(original.state_dict())["state"], row.limit)
        torch_loads(make(params.values()), saved)


@pytest.mark.parametrize("name", ["torch.optim.AdamW", "torch.optim.SGD"])
def test_the_state_of_stacked_layers_is_that_of_each(name: str) -> None:
    row, options = optimizers()[name], "momentum=0.9" if name.endswith("SGD") else ""
    with double_precision():
        module = randomised(LayerStack(lambda rngs: nnx.Linear(4, 3, rngs=rngs), 2, rngs=nnx.Rngs(0)))
        params = torch_parameters(module)
        original = getattr(torch.optim, name.rpartition(".")[2])(params.values(), lr=0.1, **eval(f"dict({options})"))
        for parameter in params.values():
            parameter.grad = torch.randn_like(parameter)
        original.step()
        optimizer = nnx.Optimizer(module, transform(row, options, module), wrt=nnx.Param)
        state = as_numpy(original.state_dict())
        load_optimizer(optimizer, module, name, state, [list(params)], updates=1)
        saved = save_optimizer(optimizer, module, name, state["param_groups"], [list(params)])
        same_state(saved["state"], state["state"], 1e-12)


def as_numpy(value: Any) -> Any:
    """A nested state with NumPy arrays for tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().copy()
    return {key: as_numpy(item) for key, item in value.items()} if isinstance(value, dict) else value


def same_state(ours: Any, theirs: Any, limit: float) -> None:
    theirs = {index: {key: value for key, value in slots.items() if value is not None} for index, slots in theirs.items()}
    assert {index: sorted(slots) for index, slots in ours.items()} == {index: sorted(slots) for index, slots in theirs.items() if slots}
    for index, slots in ours.items():
        for key, array in slots.items():
            assert array.shape == theirs[index][key].shape, key
            # torch keeps the weight of ASGD's average in float32, and so the average.
            rounded = 1e-6 if key in ("step", "mu", "ax") else limit
            assert np.abs(array - theirs[index][key]).max() <= max(limit, rounded) * max(1.0, np.abs(array).max()), key


def torch_loads(fresh: torch.optim.Optimizer, saved: Any) -> None:
    tensors = {index: {key: torch.from_numpy(np.array(array)) for key, array in slots.items()} for index, slots in saved["state"].items()}
    fresh.load_state_dict({"state": tensors, "param_groups": saved["param_groups"]})
    loaded = fresh.state_dict()
    assert {index: sorted(slots) for index, slots in loaded["state"].items()} == {index: sorted(s) for index, s in tensors.items()}


@pytest.mark.parametrize("row", optimizers().values(), ids=lambda row: row.name.rpartition(".")[2])
def test_defaults_are_torchs(row: Optimizer) -> None:
    theirs = inspect.signature(getattr(torch.optim, row.name.rpartition(".")[2])).parameters
    ours = parse_signature(row.signature).parameters
    assert [name for name in theirs if name not in ("params", *DROPPED)] == list(ours)
    assert {name: eval(p.default) for name, p in ours.items()} == {name: theirs[name].default for name in ours}
