"""Parameters by name: groups of an optimizer, and the axis order that torch's update rules see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from flax import nnx


class TorchAxesState(NamedTuple):
    """The state of a transform that sees parameters in torch's axis order."""

    inner_state: Any


def parameter_name(path: Any) -> str:
    """The dotted name of a leaf of a parameter tree, as `nnx.state` has it: `layers.0.kernel`."""
    return ".".join(str(key.key) for key in path if hasattr(key, "key"))


def label_parameters(label: Callable[[str, Any], str]) -> Callable[[Any], Any]:
    """The labels of `optax.partition`: `label(name, parameter)` says of which group a parameter is.

    They are a function of the parameters, since `nnx.Optimizer` hands its transforms trees of variables at one time and of arrays at another.
    """
    return lambda params: jax.tree_util.tree_map_with_path(lambda path, p: label(parameter_name(path), p), params)


def by_layer(model: nnx.Module, condition: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """A mask of parameters by what one layer's look like: `condition` takes shape and dtype of each, without the axes that number the layers of a stack.

    A stack is a module whose class says by `stacked` which attribute holds one module for all of its layers.
    """
    nodes = [(path, getattr(type(node), "stacked", "")) for path, node in nnx.iter_graph(model)]
    stacks = [".".join(map(str, (*path, attribute))) + "." for path, attribute in nodes if attribute]

    def of_layer(path: Any, p: Any) -> bool:
        axes = sum(parameter_name(path).startswith(stack) for stack in stacks)
        return condition(jax.ShapeDtypeStruct(p.shape[axes:], p.dtype))

    return lambda params: jax.tree_util.tree_map_with_path(of_layer, params)


def in_torch_axes(transform: optax.GradientTransformation, axes: Mapping[str, tuple[int, ...]]) -> optax.GradientTransformation:
    """`transform` on parameters whose axes are put into torch's order first; `axes` holds name → axes of those that lie otherwise."""

    def to_torch(tree: Any) -> Any:
        return jax.tree_util.tree_map_with_path(lambda path, p: p.transpose(axes.get(parameter_name(path), range(p.ndim))), tree)

    def from_torch(tree: Any) -> Any:
        return jax.tree_util.tree_map_with_path(
            lambda path, p: p.transpose(np.argsort(axes.get(parameter_name(path), range(p.ndim)))), tree
        )

    def init(params: Any) -> TorchAxesState:
        return TorchAxesState(transform.init(to_torch(params)))

    def update(grads: Any, state: TorchAxesState, params: Any = None) -> tuple[Any, TorchAxesState]:
        updates, inner = transform.update(to_torch(grads), state.inner_state, params if params is None else to_torch(params))
        return from_torch(updates), TorchAxesState(inner)

    return optax.GradientTransformation(init, update)
