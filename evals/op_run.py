"""Runs a rewritten call in JAX and compares it with torch: results and gradients."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from migrate_agent.evals.op_source import Call, torch_result
from migrate_agent.evals.op_table import NO_GRADIENT, RANDOM_ARGUMENTS, TIES, TOLERANCES, UNDEFINED
from migrate_agent.evals.parity import Difference, compare, is_float, to_jax, to_numpy

RTOL = 1e-9
COARSE = {"float32": 2e-4, "complex64": 2e-4, "bfloat16": 0.1, "float16": 2e-2}
CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


def check(call: Call, function: Callable[..., Any]) -> None:
    """Compare one call. Raises `Difference`, and what the rewritten function raises."""
    expected = _leaves(torch_result(call))
    undefined = (
        call.entry.partition(".")[0] in UNDEFINED or _base(call.entry) in UNDEFINED or RANDOM_ARGUMENTS.get(call.entry, "\0") in call.body
    )
    random = "rngs" in inspect.signature(function).parameters
    arrays = [to_jax(tensor) for tensor in call.tensors]

    def run(*inputs: Any) -> list[Any]:
        return _leaves(function(*inputs, rngs=nnx.Rngs(0)) if random else function(*inputs))

    got, gradients, wanted = _evaluate(call, run, arrays, expected, with_gradients=not undefined)
    if len(got) != len(expected):
        raise Difference(f"{len(got)} results, torch gives {len(expected)}")
    for index, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        _compare_result(call, index, ours, theirs, undefined)
    for index, (ours, theirs) in enumerate(zip(gradients, wanted, strict=True)):
        compare(f"gradient {index}", jnp.conj(ours), theirs, _tolerance(call, str(theirs.dtype)))


def _base(entry: str) -> str:
    """The entry's name without its variant; variants have no dots."""
    return entry.rpartition(".")[0]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _evaluate(
    call: Call, run: Callable[..., list[Any]], arrays: list[Any], expected: list[Any], *, with_gradients: bool
) -> tuple[Any, Any, Any]:
    """Results, our gradients and torch's, from one compiled program where the function can be compiled."""
    inputs = [i for i, tensor in enumerate(call.tensors) if tensor.requires_grad]
    outputs = [i for i, leaf in enumerate(expected) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not with_gradients or not inputs or not outputs or call.entry in NO_GRADIENT:
        return _compiled(run, arrays), [], []
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(expected[i].shape, generator=generator, dtype=expected[i].dtype) for i in outputs]
    found = torch.autograd.grad([expected[i] for i in outputs], [call.tensors[i] for i in inputs], weights, allow_unused=True)
    wanted = [np.zeros(tuple(call.tensors[i].shape)) if g is None else to_numpy(g) for i, g in zip(inputs, found, strict=True)]

    def program(*primals: Any) -> Any:
        def chosen(*values: Any) -> Any:
            full = list(primals)
            for position, value in zip(inputs, values, strict=True):
                full[position] = value
            results = run(*full)
            if len(results) != len(expected):
                raise Difference(f"{len(results)} results, torch gives {len(expected)}")
            return [results[i] for i in outputs], results

        kept, pullback, results = jax.vjp(chosen, *[primals[i] for i in inputs], has_aux=True)
        for mine, weight in zip(kept, weights, strict=True):
            if mine.shape != tuple(weight.shape):
                raise Difference(f"shape {mine.shape}, torch's is {tuple(weight.shape)}")
        return results, pullback([jnp.conj(to_jax(w)).astype(mine.dtype) for w, mine in zip(weights, kept, strict=True)])

    results, gradients = _compiled(program, arrays)
    return results, gradients, wanted


def _compiled(function: Callable[..., Any], arrays: list[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return jax.jit(function)(*arrays)
        except CONCRETE:
            return function(*arrays)
        except TypeError as error:
            if "not a valid JAX type" not in str(error):
                raise
            return function(*arrays)  # it gives something else than arrays, such as a dtype or a string


def _compare_result(call: Call, index: int, ours: Any, theirs: Any, undefined: bool) -> None:
    what = f"result {index}"
    if not isinstance(theirs, torch.Tensor):
        if isinstance(ours, jax.Array):
            ours = ours.item() if ours.ndim == 0 else ours
        if not (
            ours == theirs or (isinstance(theirs, float) and np.allclose(float(ours), theirs, equal_nan=True)) or _same_dtype(ours, theirs)
        ):
            raise Difference(f"{what}: {ours!r}, torch gives {theirs!r}")
        return
    if not hasattr(ours, "dtype"):
        raise Difference(f"{what}: a {type(ours).__name__}, torch gives a tensor")
    dtype = str(theirs.dtype).removeprefix("torch.")
    integral = not any(is_float(tensor) for tensor in call.tensors)
    if str(ours.dtype) != dtype and not (integral and {str(ours.dtype), dtype} in ({"float32", "float64"}, {"complex64", "complex128"})):
        raise Difference(f"{what}: dtype {ours.dtype}, torch's is {dtype}")
    if undefined or (integral and index and (call.entry in TIES or _base(call.entry) in TIES)):
        if tuple(ours.shape) != tuple(theirs.shape):
            raise Difference(f"{what}: shape {ours.shape}, torch's is {tuple(theirs.shape)}")
        return
    value = np.asarray(ours.astype(jnp.float32) if ours.dtype == jnp.bfloat16 else ours)
    compare(what, value, to_numpy(theirs), _tolerance(call, min((dtype, str(ours.dtype)), key=lambda d: -COARSE.get(d, 0.0))))


def _same_dtype(ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, torch.dtype) and str(theirs).removeprefix("torch.") == str(jnp.dtype(ours))


def _tolerance(call: Call, dtype: str) -> float:
    return max(COARSE.get(dtype, RTOL), COARSE.get(call.dtype, 0.0), TOLERANCES.get(call.entry, 0.0))


def body(function: Callable[..., Any]) -> str:
    """The source of a function, without the line that names it."""
    return inspect.getsource(function).partition(":")[2]
