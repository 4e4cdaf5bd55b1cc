"""Runs PyTorch's own `module_db` inputs through a torch layer and the vendored layer of the same name, in float64.

Both get the same random weights through `load_state_dict`; outputs, gradients of inputs and parameters, and buffers after the call
must agree.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db

from migrate_agent.tests.tools.vendored.exclusions import CONSTANT_ARGUMENTS, GRADIENT_TOLERANCES
from migrate_agent.tools import vendored, weights

OUTPUT = (1e-9, 1e-10)
"""Relative and absolute tolerance of outputs and buffers."""

GRADIENT = (1e-8, 1e-9)
"""… and of gradients."""


@cache
def layer_classes() -> Mapping[str, type[Any]]:
    """All layers of `tools/vendored/` by name."""
    found: dict[str, type[Any]] = {}
    for info in pkgutil.iter_modules(vendored.__path__):
        module = importlib.import_module(f"{vendored.__name__}.{info.name}")
        own = (value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__)
        found |= {value.__name__: value for value in own if issubclass(value, nnx.Module)}
    return found


@dataclass(frozen=True)
class Case:
    """One construction and one call of a layer, in training or eval mode."""

    info: ModuleInfo
    sample: ModuleInput
    training: bool
    number: int

    @property
    def name(self) -> str:
        return str(self.info.module_cls.__name__)

    def __str__(self) -> str:
        return f"{self.name} {'train' if self.training else 'eval'} {self.number} {self.sample.desc}"


def infos() -> list[ModuleInfo]:
    """The entries of `module_db` that are public layers (not the quantisation tools)."""
    return [info for info in module_db if not info.module_cls.__module__.startswith("torch.ao.")]


def cases(info: ModuleInfo) -> Iterator[Case]:
    """Every input of an entry, in both modes where these differ."""
    for training in (True, False) if info.train_and_eval_differ else (True,):
        torch.manual_seed(0)
        samples = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=False, training=training)
        for number, sample in enumerate(samples):
            yield Case(info, sample, training, number)


def as_jax(value: Any) -> Any:
    """Tensors as arrays, torch functions and layers as ours; containers are followed."""
    if isinstance(value, torch.Tensor):
        return jnp.array(value.detach().numpy())
    if isinstance(value, torch.nn.Module):
        return vendored_copy(value)
    if value is torch.nn.functional.gelu:
        return importlib.import_module(f"{vendored.__name__}.activations").gelu
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(as_jax(item) for item in value)
    return {key: as_jax(item) for key, item in value.items()} if isinstance(value, dict) else value


def vendored_copy(layer: Any) -> Any:
    """The vendored encoder or decoder layer of the same sizes as a torch one that was passed as an argument."""
    attention = layer.self_attn
    return layer_classes()[type(layer).__name__](
        attention.embed_dim,
        attention.num_heads,
        layer.linear1.out_features,
        layer.dropout.p,
        as_jax(layer.activation) if layer.activation is torch.nn.functional.gelu else "relu",
        layer.norm1.eps,
        attention.batch_first,
        layer.norm_first,
        layer.linear1.bias is not None,
        rngs=nnx.Rngs(0),
    )


def build(case: Case) -> tuple[torch.nn.Module, Any]:
    """The torch layer with random weights and buffers, and the vendored one that loaded its state dictionary."""
    arguments = case.sample.constructor_input
    keywords = {key: value for key, value in arguments.kwargs.items() if key not in ("device", "dtype")}
    reference: torch.nn.Module = case.info.module_cls(*arguments.args, **arguments.kwargs).to(torch.float64).train(case.training)
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.normal_().mul_(0.5)
        for buffer in reference.buffers():
            if buffer.is_floating_point():
                buffer.uniform_(0.3, 0.9)
    layer = layer_classes()[case.name](*as_jax(arguments.args), **as_jax(keywords), rngs=nnx.Rngs(0))
    layer.train() if case.training else layer.eval()
    weights.load_state_dict(layer, {key: value.numpy() for key, value in reference.state_dict().items()})
    return reference, layer


@dataclass(frozen=True)
class Result:
    """What a layer did: outputs, gradients by input number and by parameter, state after the call."""

    outputs: list[Any]
    input_gradients: list[Any]
    parameter_gradients: Mapping[str, Any]
    state: Mapping[str, Any]


def is_float(value: Any) -> bool:
    """Whether a tensor or array can have a gradient."""
    return value.is_floating_point() if isinstance(value, torch.Tensor) else jnp.issubdtype(getattr(value, "dtype", int), jnp.floating)


def run_torch(reference: torch.nn.Module, case: Case) -> tuple[Result, list[Any]]:
    """The reference's result, and the cotangents that it was differentiated with."""
    arguments = case.sample.forward_input
    leaves, tree = jax.tree.flatten((tuple(arguments.args), arguments.kwargs))
    constant = CONSTANT_ARGUMENTS.get(case.name, ())
    inputs: list[Any] = [
        leaf.detach().clone().requires_grad_() if isinstance(leaf, torch.Tensor) and is_float(leaf) and i not in constant else leaf
        for i, leaf in enumerate(leaves)
    ]
    args, kwargs = cast(tuple[Any, Any], jax.tree.unflatten(tree, inputs))
    outputs = [output for output in jax.tree.leaves(reference(*args, **kwargs)) if isinstance(output, torch.Tensor)]
    cotangents = [torch.randn_like(output) for output in outputs if is_float(output)]
    total: Any = sum((output * cotangent).sum() for output, cotangent in zip(filter(is_float, outputs), cotangents, strict=True))
    wanted = [leaf for leaf in inputs if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    named = dict(reference.named_parameters(remove_duplicate=False))
    sources = [*wanted, *named.values()]
    found = torch.autograd.grad(total, sources, allow_unused=True) if sources else ()
    gradients = [torch.zeros_like(s) if g is None else g for s, g in zip(sources, found, strict=True)]
    result = Result(
        [output.detach().numpy() for output in outputs],
        [gradient.numpy() for gradient in gradients[: len(wanted)]],
        {name: gradient.numpy() for name, gradient in zip(named, gradients[len(wanted) :], strict=True)},
        {name: value.numpy() for name, value in reference.state_dict().items()},
    )
    return result, [cotangent.numpy() for cotangent in cotangents]


def run_jax(layer: nnx.Module, case: Case, cotangents: Sequence[Any], compile: bool = False) -> Result:
    """The vendored layer's result."""
    arguments = case.sample.forward_input
    leaves, tree = jax.tree.flatten(as_jax((tuple(arguments.args), arguments.kwargs)))
    constant = CONSTANT_ARGUMENTS.get(case.name, ())
    chosen = [i for i, leaf in enumerate(leaves) if is_float(leaf) and i not in constant]
    parts: Any = nnx.split(layer, nnx.Param, ...)
    graph, parameters, rest = parts

    def loss(parameters: Any, inputs: Sequence[Any], rest: Any) -> Any:
        model: Any = nnx.merge(graph, parameters, rest, copy=True)
        values = dict(enumerate(leaves)) | dict(zip(chosen, inputs, strict=True))
        args, kwargs = jax.tree.unflatten(tree, [values[i] for i in range(len(leaves))])
        outputs = jax.tree.leaves(model(*args, **kwargs))
        total = sum((output * cotangent).sum() for output, cotangent in zip(filter(is_float, outputs), cotangents, strict=True))
        return total, (outputs, nnx.split(model)[1])

    differentiate = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    (_, (outputs, after)), (by_parameter, by_input) = (jax.jit(differentiate) if compile else differentiate)(
        parameters, [leaves[i] for i in chosen], rest
    )
    found = weights.leaves(nnx.merge(graph, by_parameter, rest))
    named = {name: leaf.to_torch(leaf.variable.get_value()) for name, leaf in found.items() if isinstance(leaf.variable, nnx.Param)}
    nnx.update(layer, after)
    return Result(outputs, by_input, named, weights.state_dict(layer))


def compare(case: Case, compile: bool = False) -> None:
    """Raises `AssertionError` where the two layers differ."""
    reference, layer = build(case)
    before = {key: value.numpy().copy() for key, value in reference.state_dict().items()}
    assert_same(weights.state_dict(layer), before, lambda mine, theirs: np.testing.assert_array_equal(mine, theirs))
    theirs, cotangents = run_torch(reference, case)
    mine = run_jax(layer, case, cotangents, compile)
    assert len(mine.outputs) == len(theirs.outputs)
    for output, expected in zip(mine.outputs, theirs.outputs, strict=True):
        assert output.shape == expected.shape
        assert np.issubdtype(output.dtype, np.integer) or output.dtype == expected.dtype
        np.testing.assert_allclose(output, expected, *OUTPUT, err_msg="output")
    limit = (GRADIENT_TOLERANCES.get(case.name, GRADIENT[0]), GRADIENT[1])
    for number, (gradient, expected) in enumerate(zip(mine.input_gradients, theirs.input_gradients, strict=True)):
        np.testing.assert_allclose(gradient, expected, *limit, err_msg=f"gradient of input {number}")
    assert_same(mine.parameter_gradients, theirs.parameter_gradients, lambda a, b: np.testing.assert_allclose(a, b, *limit))
    assert_same(mine.state, theirs.state, lambda a, b: np.testing.assert_allclose(a, b, *OUTPUT))


def assert_same(mine: Mapping[str, Any], theirs: Mapping[str, Any], check: Callable[[Any, Any], None]) -> None:
    """The same names, and arrays that pass `check`."""
    assert set(mine) == set(theirs)
    for name in mine:
        check(mine[name], theirs[name])


def spread(items: Sequence[Case], count: int) -> list[Case]:
    """At most `count` of the items, evenly spaced, the first and the last among them."""
    if len(items) <= count:
        return list(items)
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]
