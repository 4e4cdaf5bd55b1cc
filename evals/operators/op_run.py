"""Runs a rewritten call in JAX and compares it with torch: results and gradients."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from migrate_agent.evals.operators.op_source import Call, torch_result
from migrate_agent.evals.operators.op_table import NO_GRADIENT, RANDOM_ARGUMENTS, TIES, TOLERANCES, UNDEFINED
from migrate_agent.evals.operators.parity import Array, Difference, compare, is_float, to_numpy

RTOL = 1e-9
LOW = ("bfloat16", "float16")
"""Dtypes in which many values are equal."""
COARSE = {"float32": 1e-5, "complex64": 1e-5, "bfloat16": 0.03, "float16": 4e-3}
"""Error that is allowed whatever torch's own error is, relative to the largest value: a few roundings."""
CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


@dataclass
class Trial:
    """One rewritten call: a JAX program of the call's arrays, which gives results and gradients, and what torch gives."""

    call: Call
    program: Callable[..., tuple[list[Any], list[Any]]]
    arrays: list[Any]
    expected: list[Any]
    gradients: list[Array]
    exact: tuple[list[Any], list[Array]] | None
    """Torch's answer in double precision, where the call is in a lower one."""
    undefined: bool


def check(call: Call, function: Callable[..., Any]) -> None:
    """Compare one call. Raises `Difference`, and what the rewritten function raises."""
    trial = prepare(call, function)
    _judge(trial, *_alone(trial))


def problems(pairs: Sequence[tuple[Call, Callable[..., Any]]]) -> list[str]:
    """What is wrong with each rewritten call, or "". They are compiled together, which saves most of the compiler's time."""
    messages = [""] * len(pairs)
    trials: dict[int, Trial] = {}
    for index, (call, function) in enumerate(pairs):
        try:
            trials[index] = prepare(call, function)
        except Exception as error:
            messages[index] = describe(error)
    results = _together(list(trials.values()))
    for (index, trial), result in zip(trials.items(), results, strict=True):
        try:
            _judge(trial, *(_alone(trial) if isinstance(result, CONCRETE) or result is None else _raised(result)))
        except Exception as error:
            messages[index] = describe(error)
    return messages


def describe(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _raised(result: Any) -> Any:
    if isinstance(result, Exception):
        raise result
    return result


def prepare(call: Call, function: Callable[..., Any]) -> Trial:
    """The trial of a call: runs torch, not yet JAX."""
    expected = _leaves(torch_result(call))
    undefined = (
        bool({call.entry, call.entry.partition(".")[0], _base(call.entry)} & UNDEFINED)
        or RANDOM_ARGUMENTS.get(call.entry, "\0") in call.body
    )
    random = "rngs" in inspect.signature(function).parameters
    arrays = [_array(tensor) for tensor in call.tensors]

    def run(*inputs: Any) -> list[Any]:
        return _leaves(function(*inputs, rngs=nnx.Rngs(0)) if random else function(*inputs))

    inputs = [i for i, tensor in enumerate(call.tensors) if tensor.requires_grad]
    outputs = [i for i, leaf in enumerate(expected) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    ties = call.dtype in LOW and bool({call.entry, _base(call.entry)} & TIES)
    if undefined or ties or not inputs or not outputs or call.entry in NO_GRADIENT:
        return Trial(call, lambda *arrays: (run(*arrays), []), arrays, expected, [], None if undefined else _exact(call, []), undefined)
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(expected[i].shape, generator=generator, dtype=expected[i].dtype) for i in outputs]
    try:
        gradients = _torch_gradients(call.tensors, expected, outputs, weights)
    except NotImplementedError:  # torch has no derivative of this spelling
        return Trial(call, lambda *arrays: (run(*arrays), []), arrays, expected, [], _exact(call, []), undefined)
    program = _with_gradients(run, len(expected), inputs, outputs, weights)
    return Trial(call, program, arrays, expected, gradients, _exact(call, weights), undefined)


def _array(tensor: torch.Tensor) -> Array:
    """The tensor's values in its own dtype, as numpy: what JAX does to arrays outside a program is compiled piece by piece."""
    return to_numpy(tensor).astype(jnp.bfloat16) if tensor.dtype == torch.bfloat16 else to_numpy(tensor)


def _host(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == jnp.bfloat16 else array


def _torch_gradients(
    tensors: Sequence[torch.Tensor], results: Sequence[Any], outputs: Sequence[int], weights: Sequence[torch.Tensor]
) -> list[Array]:
    inputs = [tensor for tensor in tensors if tensor.requires_grad]
    gradients = torch.autograd.grad([results[i] for i in outputs], inputs, list(weights), allow_unused=True)
    return [np.zeros(tuple(tensor.shape)) if g is None else to_numpy(g) for tensor, g in zip(inputs, gradients, strict=True)]


def _exact(call: Call, weights: Sequence[torch.Tensor]) -> tuple[list[Any], list[Array]] | None:
    """What torch gives for the same numbers in double precision; None where the call is in it, or cannot be."""
    if call.dtype not in COARSE:
        return None
    wide = [_widened(tensor) for tensor in call.tensors]
    try:
        results = _leaves(torch_result(replace(call, tensors=tuple(wide))))
        outputs = [i for i, leaf in enumerate(results) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        return results, _torch_gradients(wide, results, outputs, [_widened(weight) for weight in weights]) if weights else []
    except Exception:
        return None


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    if not is_float(tensor):
        return tensor
    return tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64).requires_grad_(tensor.requires_grad)


def _with_gradients(
    run: Callable[..., list[Any]], count: int, inputs: Sequence[int], outputs: Sequence[int], weights: Sequence[torch.Tensor]
) -> Callable[..., tuple[list[Any], list[Any]]]:
    """A program that gives all results, and the gradients of the weighted outputs by the inputs."""

    def program(*primals: Any) -> tuple[list[Any], list[Any]]:
        def chosen(*values: Any) -> Any:
            full = list(primals)
            for position, value in zip(inputs, values, strict=True):
                full[position] = value
            results = run(*full)
            if len(results) != count:
                raise Difference(f"{len(results)} results, torch gives {count}")
            return [results[i] for i in outputs], results

        primal_outputs, pullback, results = jax.vjp(chosen, *[primals[i] for i in inputs], has_aux=True)
        for mine, weight in zip(primal_outputs, weights, strict=True):
            if mine.shape != tuple(weight.shape):
                raise Difference(f"shape {mine.shape}, torch's is {tuple(weight.shape)}")
        return results, pullback([np.conj(_array(w)).astype(mine.dtype) for w, mine in zip(weights, primal_outputs, strict=True)])

    return program


def _base(entry: str) -> str:
    """The entry's name without its variant; variants have no dots."""
    return entry.rpartition(".")[0]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def _together(trials: Sequence[Trial]) -> list[Any]:
    """Results and gradients of each trial from one compiled program; instead the exception that it raised, or None where the whole failed."""
    errors: dict[int, Exception] = {}
    others: dict[tuple[int, int], Any] = {}  # results that are no arrays, such as a dtype or a string

    def program(inputs: list[list[Any]]) -> list[Any]:
        answers = []
        for index, (trial, arrays) in enumerate(zip(trials, inputs, strict=True)):
            try:
                results, gradients = trial.program(*arrays)
            except Exception as error:
                errors[index], results, gradients = error, [], []
            others.update({(index, i): leaf for i, leaf in enumerate(results) if not hasattr(leaf, "dtype")})
            answers.append(([leaf if hasattr(leaf, "dtype") else None for leaf in results], gradients))
        return answers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answers = jax.jit(program)([trial.arrays for trial in trials])
        except Exception:
            return [None] * len(trials)
    for (index, position), leaf in others.items():
        answers[index][0][position] = leaf
    return [errors.get(index, result) for index, result in enumerate(answers)]


def _alone(trial: Trial) -> tuple[list[Any], list[Any]]:
    """Results and gradients of one trial, compiled where it can be."""
    (result,) = _together([trial])
    if isinstance(result, tuple):
        return result
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return trial.program(*map(jnp.asarray, trial.arrays))


def _judge(trial: Trial, results: list[Any], gradients: list[Any]) -> None:
    call = trial.call
    if len(results) != len(trial.expected):
        raise Difference(f"{len(results)} results, torch gives {len(trial.expected)}")
    exact, exact_gradients = trial.exact or ([], [])
    for index, (ours, theirs) in enumerate(zip(results, trial.expected, strict=True)):
        _compare_result(call, index, ours, theirs, trial.undefined, exact[index] if index < len(exact) else None)
    for index, (ours, theirs) in enumerate(zip(gradients, trial.gradients, strict=True)):
        better = exact_gradients[index] if index < len(exact_gradients) else None
        terms = _terms(results, theirs) if call.dtype in LOW else 1.0
        _close(f"gradient {index}", np.conj(_host(ours)), theirs, better, _tolerance(call, str(ours.dtype)) * math.sqrt(terms))


def _terms(results: list[Any], gradient: Array) -> float:
    """How many terms a gradient sums, where its argument was broadcast: XLA's CPU backend rounds each sum to low precision, torch the last one."""
    return max(1.0, max((getattr(result, "size", 1) for result in results), default=1) / max(gradient.size, 1))


def _close(label: str, ours: Any, theirs: Array, exact: Array | None, rtol: float) -> None:
    """Raise `Difference` unless `ours` agrees; in low precision its error may be twice torch's own, and the tolerance more."""
    value = _host(ours)
    if exact is None or exact.shape != theirs.shape or value.shape != theirs.shape or not theirs.size:
        compare(label, value, theirs, rtol if exact is None else max(rtol, RTOL))
        return
    lost = np.isfinite(exact) & ~np.isfinite(theirs) & np.isfinite(value)  # torch itself is out of range: the exact answer counts
    theirs = np.where(lost, exact, theirs)
    finite = np.isfinite(exact) & np.isfinite(theirs)
    if not np.array_equal(value[~finite], theirs[~finite], equal_nan=True):
        compare(label, value, theirs, rtol)
        return
    scale = max(1.0, float(np.abs(exact[finite]).max(initial=0.0)))
    error, allowed = (float(np.abs(side[finite] - exact[finite]).max(initial=0.0)) for side in (value, theirs))
    if not error <= 2 * allowed + rtol * scale:
        raise Difference(f"{label}: off by {error:.1e} where torch is by {allowed:.1e} and values reach {scale:.1e}")


def _compare_result(call: Call, index: int, ours: Any, theirs: Any, undefined: bool, exact: Any) -> None:
    label = f"result {index}"
    if not isinstance(theirs, torch.Tensor):
        if isinstance(ours, jax.Array):
            ours = ours.item() if ours.ndim == 0 else ours
        if not (
            ours == theirs or (isinstance(theirs, float) and np.allclose(float(ours), theirs, equal_nan=True)) or _same_dtype(ours, theirs)
        ):
            raise Difference(f"{label}: {ours!r}, torch gives {theirs!r}")
        return
    if not hasattr(ours, "dtype"):
        raise Difference(f"{label}: a {type(ours).__name__}, torch gives a tensor")
    dtype = str(theirs.dtype).removeprefix("torch.")
    integral = not any(is_float(tensor) for tensor in call.tensors)
    if str(ours.dtype) != dtype and not (integral and {str(ours.dtype), dtype} in ({"float32", "float64"}, {"complex64", "complex128"})):
        raise Difference(f"{label}: dtype {ours.dtype}, torch's is {dtype}")
    if undefined or ((integral or call.dtype in LOW) and index and (call.entry in TIES or _base(call.entry) in TIES)):
        if tuple(ours.shape) != tuple(theirs.shape):
            raise Difference(f"{label}: shape {ours.shape}, torch's is {tuple(theirs.shape)}")
        return
    better = to_numpy(exact) if isinstance(exact, torch.Tensor) and is_float(exact) and is_float(theirs) else None
    tolerance = _tolerance(call, min((dtype, str(ours.dtype)), key=lambda d: -COARSE.get(d, 0.0)))
    _close(label, ours, to_numpy(theirs), better, tolerance)


def _same_dtype(ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, torch.dtype) and str(theirs).removeprefix("torch.") == str(jnp.dtype(ours))


def _tolerance(call: Call, dtype: str) -> float:
    return max(COARSE.get(dtype, RTOL), COARSE.get(call.dtype, 0.0), TOLERANCES.get(call.entry, 0.0))


def body(function: Callable[..., Any]) -> str:
    """The source of a function, without the line that names it."""
    return inspect.getsource(function).partition(":")[2]
