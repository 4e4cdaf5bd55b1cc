"""Runs one entry of PyTorch's `op_db` through its row: the call as torch source, the row's JAX text, and both results and gradients."""

from __future__ import annotations

import importlib
import math
import pkgutil
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from flax import nnx
from jax import lax

from migrate_agent.tests.tools.rewrite.tables.ops.expansion import dtype_constants, expand
from migrate_agent.tools import kernels, vendored

RTOL = 1e-10


class Mismatch(Exception):
    """The JAX text does not do what torch does."""


@dataclass(frozen=True)
class Case:
    """One call: its source over `t0, t1, …` and the values of these names."""

    source: str
    tensors: tuple[torch.Tensor, ...]
    differentiable: bool


@cache
def namespace() -> Mapping[str, Any]:
    """What generated code may refer to."""
    helpers: dict[str, Any] = {}
    for package in (vendored, kernels):
        for info in pkgutil.iter_modules(package.__path__):
            helpers |= vars(importlib.import_module(f"{package.__name__}.{info.name}"))
    return {
        "jnp": jnp,
        "optax": optax,
        "jax": jax,
        "lax": lax,
        "np": np,
        "math": math,
        "nnx": nnx,
        "vendored": types.SimpleNamespace(**helpers),
    }


class Source:
    """Writes values as torch source; tensors become the names `t0, t1, …`."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []

    def write(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            return f"t{len(self.tensors) - 1}"
        if isinstance(value, (list, tuple)):
            items = [self.write(item) for item in value]
            if isinstance(value, list):
                return f"[{', '.join(items)}]"
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if isinstance(value, float) and not math.isfinite(value):
            return f"float('{value}')"
        if isinstance(value, slice):
            return f"slice({value.start}, {value.stop}, {value.step})"
        if callable(value) and not isinstance(value, type):
            raise NotImplementedError(f"argument {value!r} has no source")
        return repr(value)


def write_call(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any], differentiable: bool, method: bool) -> Case:
    """The call as source: `torch.name(t0, …)`, or `t0.name(…)`."""
    source = Source()
    texts = [source.write(argument) for argument in arguments]
    texts += [f"{key}={source.write(value)}" for key, value in keywords.items()]
    if method and len(texts) == 1 and not callable(getattr(source.tensors[0], name)):
        return Case(f"t0.{name}", tuple(source.tensors), differentiable)
    head = f"{texts.pop(0)}.{name}" if method else f"torch.{name}"
    return Case(f"{head}({', '.join(texts)})", tuple(source.tensors), differentiable)


def to_jax(tensor: torch.Tensor) -> jax.Array:
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return jnp.asarray(tensor.float().numpy()).astype(jnp.bfloat16)
    return jnp.asarray(tensor.resolve_conj().resolve_neg().numpy().copy())


def evaluate(text: str, **arrays: Any) -> Any:
    """The value of JAX source, vendored helpers being at hand by their bare names too."""
    return eval(text, vars(namespace()["vendored"]) | dict(namespace()), arrays)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def as_numpy(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, torch.Tensor):
        value = torch.zeros(value.shape, dtype=value.dtype) if value._is_zerotensor() else value.detach().resolve_conj().resolve_neg()
        value = value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    return np.asarray(value)


def dtypes_agree(ours: Any, theirs: torch.Tensor, integral: bool) -> bool:
    """Equal dtypes; JAX makes float32 of bools where torch makes its default float (float64 here)."""
    wanted = str(theirs.dtype).removeprefix("torch.")
    return str(ours.dtype) == wanted or (integral and {str(ours.dtype), wanted} in ({"float32", "float64"}, {"complex64", "complex128"}))


def compare(what: str, ours: Any, theirs: Any, rtol: float, dtypes: bool = True, integral: bool = False) -> None:
    """Raise `Mismatch` unless shapes, dtypes and values agree (to `rtol` of the largest value)."""
    a, b = as_numpy(ours), as_numpy(theirs)
    if a.shape != b.shape:
        raise Mismatch(f"{what}: shape {a.shape}, torch {b.shape}")
    if dtypes and isinstance(theirs, torch.Tensor) and isinstance(ours, jax.Array) and not dtypes_agree(ours, theirs, integral):
        raise Mismatch(f"{what}: dtype {a.dtype}, {theirs.dtype}")
    if a.size == 0:
        return
    rtol = 1e-5 if str(a.dtype) in ("float32", "float16", "bfloat16", "complex64") else rtol
    if a.dtype != b.dtype:
        a = a.astype(b.dtype)
    if b.dtype.kind not in "fc":
        if not np.array_equal(a, b):
            raise Mismatch(f"{what}: {a.ravel()[:6]}, torch {b.ravel()[:6]}")
        return
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        raise Mismatch(f"{what}: nan at other places ({np.isnan(a).sum()}, torch {np.isnan(b).sum()})")
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite & ~np.isnan(b)], b[~finite & ~np.isnan(b)]):
        raise Mismatch(f"{what}: infinities at other places")
    if not finite.any():
        return
    error = np.abs(a[finite] - b[finite]).max()
    scale = np.abs(b[finite]).max()
    if not error <= rtol * max(scale, 1.0 if rtol > 1e-6 else 1e-2):
        raise Mismatch(f"{what}: error {error:.1e} of {scale:.1e}")


def torch_result(case: Case) -> Any:
    env = {f"t{i}": tensor for i, tensor in enumerate(case.tensors)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(case.source, {"torch": torch, "slice": slice, "float": float}, env)


def jax_function(case: Case) -> tuple[str, Callable[..., list[Any]]]:
    """The JAX text of the call, and a function of its tensors that gives the leaves of the result."""
    env = {f"t{i}": tensor for i, tensor in enumerate(case.tensors)}
    text = dtype_constants(expand(case.source, env))
    code = compile(text, text, "eval")

    def function(*arrays: Any) -> list[Any]:
        return leaves(eval(code, dict(namespace()), {f"t{i}": array for i, array in enumerate(arrays)}))

    return text, function


def check(case: Case, rtol: float = RTOL, values: bool = True, ties: bool = False, hermitian: bool = False) -> str:
    """Compare result and gradients of a case; gives the JAX text. Raises `Mismatch` and whatever expansion or evaluation raises.

    Without `values` only shapes and dtypes count; `ties` leaves indices among equal integers open; `hermitian` the signs of eigenvectors.
    """
    expected = leaves(torch_result(case))
    text, function = jax_function(case)
    if hermitian:
        expected = [leaf.abs() for leaf in expected]
        signed = function

        def function(*inputs: Any) -> list[Any]:
            return [jnp.abs(leaf) for leaf in signed(*inputs)]

    arrays = [to_jax(tensor) for tensor in case.tensors]
    try:
        got = function(*arrays)
    except Exception as error:
        raise Mismatch(f"{text}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from error
    if len(got) != len(expected):
        raise Mismatch(f"{text}: {len(got)} results, torch {len(expected)}")
    integral = not any(t.is_floating_point() or t.is_complex() for t in case.tensors)
    for index, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        ours, theirs = (ours, theirs) if values else (jnp.zeros_like(ours), torch.zeros_like(theirs))
        if ties and integral and (index == 1 or len(expected) == 1):
            ours, theirs = jnp.sort(ours, axis=None), torch.sort(theirs.reshape(-1)).values
            continue
        compare(f"{text}: result {index}", ours, theirs, rtol, integral=integral)
    if case.differentiable and values:
        try:
            compare_gradients(case, function, arrays, expected, rtol, hermitian)
        except Mismatch as error:
            raise Mismatch(f"{text}: {error}") from error
    return text


def compare_gradients(
    case: Case, function: Callable[..., list[Any]], arrays: list[jax.Array], expected: list[Any], rtol: float, hermitian: bool
) -> None:
    """Compare vector-Jacobian products with random cotangents; of Hermitian arguments the Hermitian part, since the rest is arbitrary."""
    wanted = [i for i, t in enumerate(case.tensors) if t.requires_grad]
    outputs = [i for i, leaf in enumerate(expected) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not wanted or not outputs:
        return
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(expected[i].shape, generator=generator, dtype=expected[i].dtype) for i in outputs]
    theirs = torch.autograd.grad([expected[i] for i in outputs], [case.tensors[i] for i in wanted], weights, allow_unused=True)

    def chosen(*inputs: Any) -> list[Any]:
        full = list(arrays)
        for position, value in zip(wanted, inputs, strict=True):
            full[position] = value
        results = function(*full)
        return [results[i] for i in outputs]

    primals = [arrays[i] for i in wanted]
    results, pullback = jax.vjp(chosen, *primals)
    cotangents = [jnp.conj(to_jax(w)).astype(r.dtype) for w, r in zip(weights, results, strict=True)]
    for position, ours, gradient in zip(wanted, pullback(cotangents), theirs, strict=True):
        gradient = torch.zeros_like(case.tensors[position]) if gradient is None else gradient
        if hermitian:
            ours, gradient = (ours + ours.mT) / 2, (gradient + gradient.mT) / 2
        compare(f"gradient of t{position}", jnp.conj(ours), gradient, rtol, dtypes=False)


def samples(entry: Any, dtype: torch.dtype, limit: int) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """At most `limit` samples of an `op_db` entry, spread over all it has."""
    torch.manual_seed(0)
    gradients = entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(entry.sample_inputs("cpu", dtype, requires_grad=gradients))
    step = max(1, math.ceil(len(found) / limit))
    for sample in found[::step]:
        yield [sample.input, *sample.args], dict(sample.kwargs)


def dtypes(entry: Any) -> list[torch.dtype]:
    """The dtypes an entry is tried with: float64 (or complex128 where it has no float), int64 and bool."""
    supported = entry.supported_dtypes("cpu")
    floats = [d for d in (torch.float64, torch.float32, torch.complex128) if d in supported][:1]
    return floats + [d for d in (torch.int64, torch.bool) if d in supported]
