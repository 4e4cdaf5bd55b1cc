"""Runs a torch module and its rewrite on the same numbers in float64, and says where they differ: outputs, gradients, buffers, `state_dict`.

Quicker and less strict than the verifier (one input, one state, no random streams), so it finds gaps; it proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from migrate_agent.tools.harness.common import trees
from migrate_agent.tools.weights import load_state_dict, state_dict

Array = np.ndarray[Any, Any]
RTOL = 1e-9


class Difference(Exception):
    """The two programs differ; the message says where and by how much."""


def set_up_jax() -> None:
    """Double precision, and quick compilation, for the rest of the process."""
    settings: Any = jax.config
    settings.update("jax_enable_x64", True)
    settings.update("jax_disable_most_optimizations", True)


def to_numpy(tensor: torch.Tensor) -> Array:
    """The values of a tensor; bfloat16 as float32."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    return np.array(tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy())


def to_jax(value: Any) -> Any:
    """Tensors as JAX arrays of the same dtype; all else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    array = jnp.asarray(to_numpy(value))
    return array.astype(jnp.bfloat16) if value.dtype == torch.bfloat16 else array


def map_tensors(function: Callable[[torch.Tensor], Any], tree: Any) -> Any:
    """The tree with `function` applied to its tensors."""
    return jax.tree.map(lambda leaf: function(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree, is_leaf=lambda leaf: leaf is None)


def is_float(value: Any) -> bool:
    """Whether gradients flow through this tensor or array."""
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() or value.is_complex()
    return isinstance(value, (jax.Array, np.ndarray)) and jnp.issubdtype(value.dtype, jnp.inexact)


def compare(label: str, ours: Any, theirs: Any, rtol: float = RTOL) -> None:
    """Raise `Difference` unless shape and values agree, to `rtol` of the largest value; NaN and infinities must stand at the same places."""
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape:
        raise Difference(f"{label}: shape {a.shape}, torch's is {b.shape}")
    if b.dtype.kind not in "fc":
        if not np.array_equal(a, b):
            raise Difference(f"{label}: {a.ravel()[:4]}, torch has {b.ravel()[:4]}")
        return
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        raise Difference(f"{label}: NaN or infinities stand elsewhere")
    error = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    scale = max(1.0, float(np.abs(b[finite]).max(initial=0.0)))
    if error > rtol * scale:
        raise Difference(f"{label}: off by {error:.1e} where values reach {scale:.1e}")


def randomise(module: torch.nn.Module, seed: int = 0) -> None:
    """Give parameters and running statistics other values than their initial ones, which hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = 0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            tame = parameter if parameter.is_complex() else parameter.nan_to_num().clamp(-3, 3)  # some sources leave memory as they find it
            parameter.copy_(tame + noise)
        for name, buffer in module.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                buffer.add_(torch.rand(buffer.shape, generator=generator, dtype=torch.float64).to(buffer.dtype))


@dataclass(frozen=True)
class Program:
    """Something that runs in JAX: its trainable parameters and its other state (pytrees), and two functions.

    `call(parameters, rest, args, kwargs)` gives the output and the rest afterwards; `names(parameters, rest)` gives what these hold by the names of
    torch's `state_dict`.
    """

    parameters: Any
    rest: Any
    call: Callable[[Any, Any, Any, Any], tuple[Any, Any]]
    names: Callable[[Any, Any], Mapping[str, Any]]


def nnx_program(module: nnx.Module) -> Program:
    """An NNX module as it is now."""
    graphdef, parameters, rest = _split(module)

    def call(parameters: Any, rest: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        merged: Any = nnx.merge(graphdef, parameters, rest, copy=True)
        output = merged(*args, **kwargs)
        nnx.pop(merged, nnx.Intermediate)  # by NNX's convention no state
        return output, _split(merged)[2]

    def names(parameters: Any, rest: Any) -> Mapping[str, Any]:
        return dict(state_dict(nnx.merge(graphdef, parameters, rest, copy=True)))

    return Program(parameters, rest, call, names)


def compare_modules(
    original: torch.nn.Module,
    rewrite: nnx.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    gradients: bool = True,
    constant: Collection[int] = (),
) -> None:
    """Load the original's state into the rewrite, and compare them as `compare_program` does. Both must stand in the same mode."""
    state = {name: to_numpy(value) for name, value in original.state_dict().items() if isinstance(value, torch.Tensor)}
    load_state_dict(rewrite, state)
    for name, value in state_dict(rewrite).items():
        compare(f"state_dict {name} read back", value, state[name], 0.0)
    compare_program(original, nnx_program(rewrite), args, kwargs, gradients=gradients, constant=constant)


def compare_program(
    original: torch.nn.Module,
    program: Program,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    gradients: bool = True,
    jit: bool = True,
    constant: Collection[int] = (),
) -> None:
    """Call both, compare outputs, gradients of parameters and inputs, and the state afterwards.

    `constant` are float inputs, by their number, for which torch has no gradient. Raises `Difference`, and what either side raises.
    """
    leaves, args, kwargs = _leaves(args, kwargs, constant)
    jax_args, jax_kwargs = map_tensors(to_jax, (args, kwargs))  # now: the call may write to its arguments
    outputs = arrays_of(original(*args, **kwargs), torch.Tensor)
    cotangents = _cotangents(outputs)
    theirs = _torch_gradients(original, leaves, outputs, cotangents) if gradients else {}
    results, ours, after = _jax_run(program, jax_args, jax_kwargs, cotangents, with_gradients=gradients, jit=jit)
    if len(results) != len(outputs):
        raise Difference(f"{len(results)} output arrays, torch gives {len(outputs)}")
    for index, (mine, yours) in enumerate(zip(results, outputs, strict=True)):
        compare(f"output {index}", mine, to_numpy(yours))
    for name, gradient in theirs.items():
        compare(f"gradient of {name}", ours[name], gradient)
    for name, value in original.state_dict().items():
        if isinstance(value, torch.Tensor):
            compare(f"{name} after the call", after[name], to_numpy(value))


def arrays_of(output: Any, kind: Any) -> list[Any]:
    """The arrays in what a module gives, in the verifier's order."""
    arrays: list[Any] = []
    trees.encode(output, arrays, lambda leaf: isinstance(leaf, kind))
    return arrays


def _leaves(args: Sequence[Any], kwargs: Mapping[str, Any], constant: Collection[int]) -> tuple[list[torch.Tensor], Any, Any]:
    """Fresh float inputs, which require gradients but for the constant ones, and the arguments made of them."""
    leaves: list[torch.Tensor] = []

    def fresh(tensor: torch.Tensor) -> torch.Tensor:
        copy = tensor.detach().clone()
        if is_float(copy):
            leaves.append(copy.requires_grad_(len(leaves) not in constant))
            return copy.clone()  # the call may write to it
        return copy

    args, kwargs = map_tensors(fresh, (tuple(args), dict(kwargs)))
    return leaves, args, kwargs


def _cotangents(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(output.shape, generator=generator, dtype=output.dtype) if is_float(output) and output.requires_grad else None
        for output in outputs
    ]


def _torch_gradients(
    module: torch.nn.Module, leaves: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor | None]
) -> dict[str, Array]:
    named = {name: value for name, value in module.named_parameters(remove_duplicate=False) if value.requires_grad and is_float(value)}
    variables = {**named, **{f"input {index}": leaf for index, leaf in enumerate(leaves) if leaf.requires_grad}}
    chosen = [(output, cotangent) for output, cotangent in zip(outputs, cotangents, strict=True) if cotangent is not None]
    if not chosen or not variables:
        return {}
    gradients = torch.autograd.grad([o for o, _ in chosen], list(variables.values()), [c for _, c in chosen], allow_unused=True)
    return {
        name: np.zeros(tuple(variables[name].shape)) if gradient is None else to_numpy(gradient)
        for name, gradient in zip(variables, gradients, strict=True)
    }


def _jax_run(
    program: Program, args: Any, kwargs: Any, cotangents: Sequence[torch.Tensor | None], *, with_gradients: bool, jit: bool
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Outputs, gradients by torch's names, and the state afterwards, all from one program, compiled with `jit`."""
    flat, tree = jax.tree.flatten((args, kwargs), is_leaf=lambda leaf: leaf is None)
    inexact = [is_float(leaf) for leaf in flat]
    arrays = [isinstance(leaf, jax.Array) for leaf in flat]
    weights = [None if cotangent is None else to_jax(cotangent) for cotangent in cotangents]

    def loss(parameters: Any, inputs: list[Any], rest: Any, others: list[Any]) -> Any:
        floats, integers = iter(inputs), iter(others)
        leaves = [next(floats) if f else next(integers) if a else leaf for leaf, f, a in zip(flat, inexact, arrays, strict=True)]
        output, rest = program.call(parameters, rest, *jax.tree.unflatten(tree, leaves))
        results = arrays_of(output, (jax.Array, np.ndarray, nnx.Variable))
        results = [leaf.get_value() if isinstance(leaf, nnx.Variable) else jnp.asarray(leaf) for leaf in results]
        total = sum((jnp.real((r * jnp.conj(w)).sum()) for r, w in zip(results, weights, strict=False) if w is not None), jnp.zeros(()))
        return total, (results, rest)

    inputs = [leaf for leaf, f in zip(flat, inexact, strict=True) if f]
    others = [leaf for leaf, f, a in zip(flat, inexact, arrays, strict=True) if a and not f]
    function: Any = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True) if with_gradients else loss
    outputs = (jax.jit(function) if jit else function)(program.parameters, inputs, program.rest, others)
    ((_, (results, rest)), (of_parameters, of_inputs)) = outputs if with_gradients else (outputs, (program.parameters, []))
    of_parameters = jax.tree.map(jnp.conj, of_parameters)  # torch gives the conjugate of what JAX gives
    ours = {**program.names(of_parameters, rest), **{f"input {index}": jnp.conj(gradient) for index, gradient in enumerate(of_inputs)}}
    return results, ours, dict(program.names(program.parameters, rest))


def _split(module: nnx.Module) -> tuple[Any, Any, Any]:
    """Graph definition, trainable parameters, and all the rest."""
    graphdef, parameters, rest = nnx.split(module, _is_trainable, ...)  # type: ignore[misc]
    return graphdef, parameters, rest


def _is_trainable(path: Any, value: Any) -> bool:
    return isinstance(value, nnx.Param) and bool(jnp.issubdtype(value.get_value().dtype, jnp.inexact))
