"""Resume by orbax, and torch's training checkpoints in and out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from flax import nnx

from migrate_agent.sandbox.process import ProcessSandbox
from migrate_agent.tests.tools.programs.problem import (
    Model,
    deviation,
    double_precision,
    noise,
    randomised,
    torch_gradients,
    torch_parameters,
    train_step,
)
from migrate_agent.tools.checkpoint.files import CheckpointError
from migrate_agent.tools.programs.optimizer_state import load_optimizer, save_optimizer
from migrate_agent.tools.programs.torch_checkpoint import (
    LeftOut,
    host_schedule,
    load_training,
    optimizers_in,
    save_training,
    schedules_in,
    updates_so_far,
)
from migrate_agent.tools.programs.vendored.checkpoint_managers import checkpoint_manager, restore_training_state, save_training_state
from migrate_agent.tools.types import Limits
from migrate_agent.tools.vendored.torch_random import TorchGenerator
from migrate_agent.tools.weights import leaves, load_state_dict, state_dict


class Net(nnx.Module):
    """Statistics, dropout, and a list, whose numbers are keys."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layers = nnx.List([nnx.Linear(4, 8, rngs=rngs), nnx.Linear(8, 2, rngs=rngs)])
        self.bn = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.layers[1](self.dropout(nnx.relu(self.bn(self.layers[0](x)))))


@nnx.jit
def step(model: Net, optimizer: nnx.Optimizer[Net], x: Any) -> Any:
    """One update on a batch."""
    loss, grads = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
    optimizer.update(model, grads)
    return loss


TX = optax.chain(optax.add_decayed_weights(0.1), optax.adam(optax.cosine_decay_schedule(1e-2, 20)))


def fresh() -> tuple[Net, nnx.Optimizer[Net]]:
    model = Net(nnx.Rngs(0))
    return model, nnx.Optimizer(model, TX, wrt=nnx.Param)


def test_resumed_is_uninterrupted(tmp_path: Path) -> None:
    """Bit for bit, with dropout, statistics, and the order of a generator."""
    batches = jnp.asarray(np.random.default_rng(0).normal(size=(8, 6, 4)), jnp.float32)
    model, optimizer = fresh()
    generator = TorchGenerator().manual_seed(3)
    whole = [float(step(model, optimizer, batches[i])) for i in generator.permutation(8)]
    after = generator.integer()
    model, optimizer = fresh()
    generator = TorchGenerator().manual_seed(3)
    order = generator.permutation(8)
    losses = [float(step(model, optimizer, batches[i])) for i in order[:4]]
    with checkpoint_manager(tmp_path / "run", max_to_keep=1) as manager:
        assert restore_training_state(manager, (model, optimizer)) is None
        save_training_state(manager, 4, (model, optimizer), {"epoch": np.int64(1), "best": 0.25, "generator": generator.get_state()})
    model, optimizer = fresh()
    with checkpoint_manager(tmp_path / "run") as manager:
        meta = restore_training_state(manager, (model, optimizer))
    assert meta is not None and (meta["epoch"], meta["best"]) == (1, 0.25)
    assert TorchGenerator().set_state(meta["generator"]).integer() == after
    losses += [float(step(model, optimizer, batches[i])) for i in order[4:]]
    assert losses == whole


WRITE = """
write_checkpoint({"a": jax.device_put(jnp.arange(3.0), jax.devices()[-1]), "b": np.arange(2), "key": jax.random.key(7), "step": 3}, PATH)
"""
READ = """
tree = read_checkpoint(PATH)
print(tree["a"].tolist(), tree["a"].devices(), type(tree["b"]).__name__, tree["b"].dtype, jax.random.key_data(tree["key"]).tolist(), tree["step"])
"""


def test_a_checkpoint_is_read_where_its_devices_are_not(tmp_path: Path) -> None:
    """Written on the second of two devices, read where there is one, as what a GPU saved is on a CPU."""
    imports = "from migrate_agent.tools.programs.vendored.checkpoints import jax, jnp, np, read_checkpoint, write_checkpoint"
    printed = ""
    for devices, text in ((2, WRITE), (1, READ)):
        flags = f"--xla_force_host_platform_device_count={devices}"
        command = [sys.executable, "-c", f"{imports}\nPATH = {str(tmp_path / 'last')!r}{text}"]
        environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    assert printed.strip() == "[0.0, 1.0, 2.0] {CpuDevice(id=0)} ndarray int64 [0, 7] 3"


@pytest.mark.ci
def test_a_torch_run_goes_on_and_comes_back(tmp_path: Path) -> None:
    """Torch's file → JAX for ten updates → torch's file → torch for five: as torch alone."""
    sandbox, limits, name = ProcessSandbox(), Limits(), "torch.optim.AdamW"
    with double_precision():
        module = randomised(Model(nnx.Rngs(0)))
        drawn, params = noise(module), torch_parameters(module)
        names = list(params)
        original = torch.optim.AdamW(params.values(), 0.02)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(original, 0.9)

        def run(steps: range) -> None:
            for i in steps:
                torch_gradients(params, drawn, i)
                original.step()
                scheduler.step()

        def whole() -> dict[str, Any]:
            weights = {key: parameter.detach() for key, parameter in params.items()}
            return {"model": weights, "optimizer": original.state_dict(), "scheduler": scheduler.state_dict(), "epoch": 5, "best": None}

        run(range(5))
        torch.save(whole(), tmp_path / "old.pt")
        run(range(5, 20))
        saved = load_training(tmp_path / "old.pt", sandbox, tmp_path / "read", limits)
        assert (saved["epoch"], saved["best"]) == (5, None)
        ((_, state),) = optimizers_in(saved)
        ((place, schedule),) = schedules_in(saved)
        assert place == ("scheduler",)
        load_state_dict(module, saved["model"])
        tx = optax.adamw(lambda count: 0.02 * 0.9**count, weight_decay=1e-2)
        optimizer = nnx.Optimizer(module, tx, wrt=nnx.Param)
        load_optimizer(optimizer, module, name, state, [names], updates_so_far(schedule))
        for i in range(5, 15):
            train_step(module, optimizer, {key: array[i] for key, array in drawn.items()})
        groups = [{**state["param_groups"][0], "lr": 0.02 * 0.9**15}]
        back = {"model": state_dict(module), "optimizer": save_optimizer(optimizer, module, name, groups, [names])}
        back["scheduler"] = {**schedule, "last_epoch": 15, "_last_lr": [groups[0]["lr"]]}
        save_training(back, tmp_path / "new.pt", sandbox, tmp_path / "write", limits)
        expected = {key: parameter.detach().clone() for key, parameter in params.items()}
        loaded = torch.load(tmp_path / "new.pt", weights_only=True)
        for key, parameter in params.items():
            parameter.data.copy_(loaded["model"][key])
        original.load_state_dict(loaded["optimizer"])
        scheduler.load_state_dict(loaded["scheduler"])
        run(range(15, 20))
        for key, parameter in params.items():
            np.testing.assert_allclose(parameter.detach(), expected[key], rtol=1e-11)
        assert deviation(module, params) > 1e-3
        assert sorted(leaves(module)) == sorted(names)


def test_objects_are_left_out_and_refused(tmp_path: Path) -> None:
    torch.save({"epoch": 1, "size": torch.Size([2, 3]), "device": torch.device("cpu")}, tmp_path / "a.pt")
    sandbox = ProcessSandbox()
    saved = load_training(tmp_path / "a.pt", sandbox, tmp_path / "a", Limits())
    assert saved == {"epoch": 1, "size": [2, 3], "device": "device"} and isinstance(saved["device"], LeftOut)
    with pytest.raises(CheckpointError, match="no form"):
        save_training(saved, tmp_path / "b.pt", sandbox, tmp_path / "b", Limits())
    (tmp_path / "c.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match=r"c\.pt"):
        load_training(tmp_path / "c.pt", sandbox, tmp_path / "c", Limits())


def test_plateau_goes_on_from_torch() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for metric in (1.0, 2.0, 2.0, 2.0):
        plateau.step(metric)
    state = host_schedule(plateau.state_dict())
    assert state == {"best": 1.0, "num_bad_epochs": 1, "cooldown_counter": 0, "last_epoch": 4, "last_lrs": {"": pytest.approx(0.01)}}
    assert jax.process_count() == 1
