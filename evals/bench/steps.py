"""One step, forward and backward, of a module in torch, and of its rewrite under `jax.jit`, on the same parameters and inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from migrate_agent.evals.operators.parity import arrays_of, is_float, map_tensors, nnx_program, to_jax, to_numpy
from migrate_agent.evals.zoo_packages.zoo_quick import Call
from migrate_agent.tools.weights import load_state_dict


@dataclass(frozen=True)
class Step:
    """A compiled step: what runs it, and what gives XLA's text of it."""

    run: Callable[[], Any]
    text: Callable[[], str]


def torch_step(call: Call, module: Any) -> Callable[[], torch.Tensor]:
    """Outputs, their sum, and its gradients by the parameters; gives the sum."""
    parameters = [value for value in call.module.parameters() if value.requires_grad]

    def run() -> torch.Tensor:
        outputs = arrays_of(module(*call.args, **call.kwargs), torch.Tensor)
        total = sum((output.real.sum() for output in outputs if is_float(output)), torch.zeros(()))
        if parameters and total.requires_grad:
            torch.autograd.grad(total, parameters, allow_unused=True)
        return total.detach()

    return run


def jax_step(call: Call, rewrite: nnx.Module) -> Step:
    """The same of the rewrite, with the original's parameters, in one compiled program."""
    load_state_dict(rewrite, {name: to_numpy(value) for name, value in call.module.state_dict().items() if isinstance(value, torch.Tensor)})
    program = nnx_program(rewrite)
    leaves, tree = jax.tree.flatten(map_tensors(to_jax, (call.args, call.kwargs)), is_leaf=lambda leaf: leaf is None)
    inputs = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]

    def loss(parameters: Any, rest: Any, inputs: list[Any]) -> jax.Array:
        arrays = iter(inputs)
        # Arrays alone are traced; numbers are constants of the program.
        args, kwargs = jax.tree.unflatten(tree, [next(arrays) if isinstance(leaf, jax.Array) else leaf for leaf in leaves])
        results = arrays_of(program.call(parameters, rest, args, kwargs)[0], (jax.Array, np.ndarray))
        return sum((jnp.real(result).sum() for result in results if is_float(result)), jnp.zeros(()))

    compiled = jax.jit(jax.value_and_grad(loss)).lower(program.parameters, program.rest, inputs).compile()

    def run() -> jax.Array:
        wait: Any = jax.block_until_ready
        total: jax.Array = wait(compiled(program.parameters, program.rest, inputs))[0]
        return total

    return Step(run, lambda: str(compiled.as_text()))


def difference(theirs: Callable[[], torch.Tensor], ours: Callable[[], jax.Array]) -> float:
    """How far the two sums are apart, as a share of the larger."""
    a, b = float(theirs()), float(ours())
    # Where both overflow, their sums say nothing, and the step is timed all the same.
    return abs(a - b) / max(1.0, abs(a), abs(b)) if np.isfinite(a) or np.isfinite(b) else 0.0
