"""Clipping, averages of weights and accumulation against torch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.optim.swa_utils
from flax import nnx

from migrate_agent.tests.tools.programs.problem import double_precision, evaluate
from migrate_agent.tools.programs.tables.registry import function_text, functions
from migrate_agent.tools.programs.vendored.averages import accumulate_gradients
from migrate_agent.tools.rewrite.tables.registry import Refuse
from migrate_agent.tools.weights import load_state_dict, state_dict

UTILS = "torch.nn.utils"
SWA = "torch.optim.swa_utils"
swa_utils: Any = torch.optim.swa_utils


def as_array(tensor: Any) -> np.ndarray[Any, Any]:
    """A tensor as a NumPy array."""
    return np.asarray(tensor)


@pytest.mark.parametrize("arguments", ["0.05", "3.0", "100.0", "0.05, norm_type=float('inf')", "0.05, 1.0", "0.05, norm_type=3.0"])
def test_clip_by_norm(arguments: str) -> None:
    rng = np.random.default_rng(0)
    with double_precision():
        grads = {name: rng.normal(size=shape) for name, shape in (("a", (3, 4)), ("b", (5,)), ("c", ()))}
        params = [torch.nn.Parameter(torch.zeros(grad.shape)) for grad in grads.values()]
        for parameter, grad in zip(params, grads.values(), strict=True):
            parameter.grad = torch.tensor(grad)
        theirs = eval(f"torch.nn.utils.clip_grad_norm_(params, {arguments})", {"torch": torch, "params": params})
        clipped, norm = evaluate(function_text(f"{UTILS}.clip_grad_norm_", f"f(grads, {arguments})"), grads=grads)
        assert float(norm) == pytest.approx(theirs.item(), rel=1e-14)
        for parameter, grad in zip(params, clipped.values(), strict=True):
            np.testing.assert_allclose(grad, as_array(parameter.grad), rtol=1e-14)


def test_clip_by_value() -> None:
    grad = np.linspace(-1, 1, 7)
    clipped = evaluate(function_text(f"{UTILS}.clip_grad_value_", "clip_grad_value_(grads, 0.5)"), grads={"a": grad})
    parameter = torch.nn.Parameter(torch.zeros(7))
    parameter.grad = torch.tensor(grad, dtype=torch.float32)
    torch.nn.utils.clip_grad_value_([parameter], 0.5)
    assert np.array_equal(np.asarray(clipped["a"], np.float32), parameter.grad.numpy())


class Net(nnx.Module):
    """A linear layer and batch statistics."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.fc = nnx.Linear(4, 3, rngs=rngs)
        self.bn = nnx.BatchNorm(3, rngs=rngs)


AVERAGES = {
    "mean": ("", {}),
    "moving": ("avg_fn=get_ema_avg_fn(0.9)", {"avg_fn": swa_utils.get_ema_avg_fn(0.9)}),
    "moving, of lists": ("multi_avg_fn=get_ema_avg_fn(0.9)", {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)}),
    "buffers too": ("use_buffers=True", {"use_buffers": True}),
}


@pytest.mark.parametrize("label", AVERAGES)
def test_averaged_model(label: str) -> None:
    text, options = AVERAGES[label]
    with double_precision():
        theirs = torch.nn.ModuleDict({"fc": torch.nn.Linear(4, 3), "bn": torch.nn.BatchNorm1d(3)})
        mine = Net(nnx.Rngs(0))
        names = [name for name in theirs.state_dict() if "num_batches" not in name]
        rng = np.random.default_rng(0)

        def randomise() -> None:
            state = {name: rng.normal(size=tuple(theirs.state_dict()[name].shape)) for name in names}
            theirs.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()}, strict=False)
            load_state_dict(mine, state)

        randomise()
        average = swa_utils.AveragedModel(theirs, **options)
        scope = {"model": mine, "get_ema_avg_fn": lambda decay: evaluate(function_text(f"{SWA}.get_ema_avg_fn", f"f({decay})"))}
        ours = evaluate(function_text(f"{SWA}.AveragedModel", f"A(model{', ' * bool(text)}{text})"), **scope)
        update = nnx.jit(lambda ours, mine: ours.update_parameters(mine))
        for _ in range(4):
            randomise()
            average.update_parameters(theirs)
            update(ours, mine)
        state = state_dict(ours.module)
        for name in names:
            np.testing.assert_allclose(state[name], average.module.state_dict()[name], rtol=1e-13)
        assert int(ours.n_averaged[...]) == int(average.n_averaged) == 4


def test_accumulated_gradients_are_sums() -> None:
    """Two micro-batches: torch's `backward` twice, with batch statistics that go on."""
    rng = np.random.default_rng(0)
    batches = rng.normal(size=(2, 5, 4))
    with double_precision():
        theirs = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        mine = Net(nnx.Rngs(0))
        state = {name: value.numpy() for name, value in theirs.state_dict().items() if "num_batches" not in name}
        load_state_dict(mine, {name.replace("0.", "fc.").replace("1.", "bn."): value for name, value in state.items()})
        mine.bn.momentum = 0.9

        def loss_fn(model: Net, batch: Any) -> Any:
            return (model.bn(model.fc(batch)) ** 3).mean() / 2

        step = nnx.jit(lambda model, batches: accumulate_gradients(nnx.value_and_grad(loss_fn), model, batches))
        losses, grads = step(mine, tuple(jnp.asarray(batch) for batch in batches))
        for batch, loss in zip(batches, losses, strict=True):
            expected = (theirs(torch.from_numpy(batch)) ** 3).mean() / 2
            expected.backward()
            assert float(loss) == pytest.approx(expected.item(), rel=1e-12)
        kernel = grads["fc"]["kernel"]
        np.testing.assert_allclose(np.asarray(jax.tree.leaves(kernel)[0]).T, as_array(theirs[0].weight.grad), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        (f"{UTILS}.clip_grad_norm_", "f(grads, 1.0, error_if_nonfinite=True)"),
        (f"{SWA}.AveragedModel", "f(model, multi_avg_fn=own)"),
        (f"{SWA}.update_bn", "f(loader, model)"),
        ("torch.optim.SparseAdam", "f(params)"),
    ],
)
def test_refused(name: str, call: str) -> None:
    with pytest.raises(Refuse):
        function_text(name, call)
    assert functions()
