"""Backward passes that run modules again, with the same random numbers, instead of keeping what they computed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.vendored.autograd import AutogradContext, AutogradFunction, input_cotangent


def rng_state(module: nnx.Module) -> jax.Array:
    """How far the random streams that a module and its parts draw from have come, as one array.

    https://docs.pytorch.org/docs/stable/generated/torch.random.get_rng_state.html
    """
    return jnp.concatenate([jnp.zeros(0, jnp.uint32), *(jnp.ravel(counter[...]) for counter in random_counters(module))])


def set_rng_state(module: nnx.Module, state: jax.Array) -> None:
    """Set the random streams of a module back to where they were, so that the same numbers are drawn again."""
    start = 0
    for counter in random_counters(module):
        size = counter[...].size
        counter[...] = state[start : start + size].reshape(counter[...].shape)
        start += size


def random_counters(module: nnx.Module) -> list[Any]:
    """The counters of the random streams of a module and its parts, in the order of the graph."""
    return [node for _, node in nnx.iter_graph(module) if isinstance(node, nnx.RngCount)]


@contextmanager
def fork_rng(module: nnx.Module) -> Iterator[None]:
    """What is drawn inside does not move the random streams of the module."""
    state = rng_state(module)
    try:
        yield
    finally:
        set_rng_state(module, state)


class ModuleFunction(AutogradFunction):
    """An `AutogradFunction` some of whose arguments are modules, or hold modules, and whose `backward` finds their gradients by `pull_back`.

    `backward` gets the modules as `forward` left them; their buffers and random streams move on as in a plain call.
    """

    gradients: dict[int, jax.Array] | None = None

    @classmethod
    def apply(cls, *args: Any, rngs: nnx.Rngs | None = None) -> Any:
        """Call it. Raises `NotImplementedError` for `rngs`: modules have streams of their own."""
        if rngs is not None:
            raise NotImplementedError("a function of modules draws from the streams of the modules")
        leaves, tree = jax.tree.flatten(args, is_leaf=is_module)
        modules = [leaf for leaf in leaves if is_module(leaf)]
        arrays = [leaf for leaf in leaves if isinstance(leaf, (jax.Array, np.ndarray))]
        fixed = [None if is_module(leaf) or isinstance(leaf, (jax.Array, np.ndarray)) else leaf for leaf in leaves]
        kinds = ["module" if is_module(leaf) else "array" if isinstance(leaf, (jax.Array, np.ndarray)) else "" for leaf in leaves]
        graph, trained, rest = split_modules(modules)
        places = {id(value): place for place, value in enumerate(args)}
        owners = [places.get(id(array)) for array in arrays]
        count = len(args)
        kept: dict[str, Any] = {}  # what a backward pass is made of outlives this call: it holds no array

        def forward(trained: Any, rest: Any, arrays: list[Any]) -> tuple[Any, Any]:
            given = nnx.merge(graph, trained, rest)
            sources = {"module": iter(given), "array": iter(arrays)}
            values = [next(sources[kind]) if kind else value for kind, value in zip(kinds, fixed, strict=True)]
            ctx = AutogradContext(saved_tensors=(), needs_input_grad=(True,) * count)
            output = cls.forward(ctx, *jax.tree.unflatten(tree, values))
            found, kept["tree"] = jax.tree.flatten(dict(ctx), is_leaf=is_module)
            kept["fixed"] = [None if is_module(v) or isinstance(v, jax.Array) else v for v in found]
            kept["kinds"] = ["module" if is_module(v) else "array" if isinstance(v, jax.Array) else "" for v in found]
            kept["graph"], state = nnx.split((given, [v for v in found if is_module(v)]))
            return (output, known(split_modules(given)[2], rest)), (state, [v for v in found if isinstance(v, jax.Array)], arrays)

        def backward(residuals: Any, cotangents: Any) -> tuple[Any, ...]:
            state, saved, arrays = residuals
            given, used = nnx.merge(kept["graph"], state)
            sources = {"module": iter(used), "array": iter(saved)}
            values = [next(sources[kind]) if kind else value for kind, value in zip(kept["kinds"], kept["fixed"], strict=True)]
            ctx = AutogradContext(**jax.tree.unflatten(kept["tree"], values))
            before, ModuleFunction.gradients = ModuleFunction.gradients, {}
            try:
                output = cotangents[0]
                result = cls.backward(ctx, *(output if isinstance(output, tuple) else (output,)))
                of_parameters = parameter_gradients(given, ModuleFunction.gradients)
            finally:
                ModuleFunction.gradients = before
            result = result if isinstance(result, tuple) else (result,)
            found = [None if owner is None else result[owner] for owner in owners]
            return of_parameters, None, [input_cotangent(g, value) for g, value in zip(found, arrays, strict=True)]

        call = jax.custom_vjp(lambda *values: forward(*values)[0])
        call.defvjp(forward, backward)
        output, moved = call(trained, rest, arrays)
        nnx.update(modules, moved)
        return output


def is_module(value: Any) -> bool:
    """Whether a value is a module, or a container of modules."""
    return isinstance(value, nnx.Module)


def split_modules(modules: Any) -> tuple[Any, Any, Any]:
    """The graph of modules, their parameters and the rest of their state."""
    graph, trained, rest = nnx.split(modules, nnx.Param, ...)  # type: ignore[misc]
    return graph, trained, rest


def known(moved: Any, rest: Any) -> Any:
    """Of a state after a call only what was there before it."""
    paths = dict(nnx.to_flat_state(rest))
    return nnx.from_flat_state([(path, value) for path, value in nnx.to_flat_state(moved) if path in paths])


def parameter_gradients(modules: Any, gradients: dict[int, jax.Array]) -> Any:
    """The gradients found for the parameters of modules, zeros where there are none, in the form of their state."""
    variables = {path: node for path, node in nnx.iter_graph(modules) if isinstance(node, nnx.Param)}
    state = nnx.state(modules, nnx.Param)
    values = [gradients.get(id(variables[path]), jnp.zeros_like(variables[path][...])) for path, _ in nnx.to_flat_state(state)]
    return jax.tree.unflatten(jax.tree.structure(state), values)


def pull_back(call: Callable[..., Any], module: nnx.Module, input: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`call(module, input)` and the gradient of `input`, given that of the result; the parameters' gradients are those of the `ModuleFunction`.

    https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html
    Raises `RuntimeError` outside of the `backward` of a `ModuleFunction`.
    """
    gradients = ModuleFunction.gradients
    if gradients is None:
        raise RuntimeError("pull_back is for the backward pass of a ModuleFunction")
    graph, trained, rest = split_modules(module)

    def run(trained: Any, input: jax.Array) -> jax.Array:
        fresh = jax.tree.map(lambda leaf: leaf, rest)  # variables that may be changed while this is traced
        result: jax.Array = call(nnx.merge(graph, trained, fresh), input)
        return result

    output, pull = jax.vjp(run, trained, input)
    of_parameters, of_input = pull(cotangent)
    variables = {path: node for path, node in nnx.iter_graph(module) if isinstance(node, nnx.Param)}
    for path, gradient in nnx.to_flat_state(of_parameters):
        key, value = id(variables[path]), gradient[...] if isinstance(gradient, nnx.Variable) else gradient
        gradients[key] = gradients[key] + value if key in gradients else value
    return output, of_input
