"""Moves torch state dictionaries (name → numpy array) into NNX modules and back.

Names are attribute paths. NNX's standard layers have other names and axis orders for some leaves; `RULES` lists them.
Attributes whose torch names NNX uses itself stand in the table `torch_names` of their class: `{"mask_": "mask"}`.
A class says in `tied_names` under which further names torch has a variable: `{"head.weight": "embedding.weight"}`.
What a container with `registered = False` holds stands under its other names alone.
A class with `stacked = "layers"` holds under this attribute one module for all of its `count` layers: each array has a first axis more.
Parameters (`nnx.Param`), statistics (`nnx.BatchStat`) and plain `nnx.Variable`s belong to the dictionary; random streams, caches and
intermediates do not. Importing this module imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx

Array = np.ndarray[Any, Any]


class StateDictError(ValueError):
    """A state dictionary that does not fit its module, or a module that has none. Names all offending keys."""


class Rule(NamedTuple):
    """Torch's name of a leaf, and the axis order that turns NNX's array of `ndim` axes into torch's (None: as it is)."""

    name: str
    axes: Callable[[int], tuple[int, ...]] | None = None


def _reverse_axes(ndim: int) -> tuple[int, ...]:
    return tuple(reversed(range(ndim)))


def _channels_first_axes(ndim: int) -> tuple[int, ...]:
    return (ndim - 1, ndim - 2, *range(ndim - 2))


_NORM = {"scale": Rule("weight")}

RULES: Mapping[type[nnx.Module], Mapping[str, Rule]] = {
    nnx.Linear: {"kernel": Rule("weight", _reverse_axes), "tied": Rule("weight")},
    nnx.Conv: {"kernel": Rule("weight", _channels_first_axes)},
    nnx.ConvTranspose: {"kernel": Rule("weight", _channels_first_axes)},
    nnx.Embed: {"embedding": Rule("weight"), "tied": Rule("weight", _reverse_axes)},
    nnx.LayerNorm: _NORM,
    nnx.RMSNorm: _NORM,
    nnx.GroupNorm: _NORM,
    nnx.InstanceNorm: _NORM,
    nnx.BatchNorm: {**_NORM, "mean": Rule("running_mean"), "var": Rule("running_var")},
}
"""NNX layer (subclasses included) → attribute → rule. `tied` holds a shared variable whose layout is that of the layer it comes from."""


@dataclass(frozen=True)
class Leaf:
    """One entry of a state dictionary: its torch name, the variable behind it, and the axis order from NNX's array to torch's.

    `index`: where the array of this entry lies in a variable that holds those of several layers.
    """

    name: str
    variable: nnx.Variable[Any]
    axes: tuple[int, ...] | None = None
    index: tuple[int, ...] = ()

    def part(self, array: Any) -> Any:
        """What belongs to this entry of an array of the variable's shape."""
        return array[self.index] if self.index else array

    def to_torch(self, array: Any) -> Array:
        """An array of the variable's shape (its value, its gradient) in torch's axis order: a new, contiguous numpy array."""
        part = np.asarray(self.part(array))
        return np.array(part if self.axes is None else part.transpose(self.axes), order="C")

    def from_torch(self, array: Any) -> Array:
        """An array in torch's axis order as the variable, or the part of it, holds it."""
        return np.asarray(array) if self.axes is None else np.asarray(array).transpose(np.argsort(self.axes))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in torch's axis order."""
        shape = tuple(self.variable.get_value().shape)[len(self.index) :]
        return shape if self.axes is None else tuple(shape[axis] for axis in self.axes)


def leaves(module: nnx.Module) -> dict[str, Leaf]:
    """Torch name → leaf, in the order of the attributes. Raises `StateDictError` where two variables would have one name."""
    by_name: dict[str, Leaf] = {}
    for leaf in _walk(module, "", ()):
        if leaf.name in by_name and by_name[leaf.name].variable is not leaf.variable:
            raise StateDictError(f"two variables are called {leaf.name!r}")
        by_name[leaf.name] = leaf
    return by_name


def parameters(module: nnx.Module) -> dict[str, nnx.Variable[Any]]:
    """Torch name → the `nnx.Param` behind it; a tied parameter stands under each of its names."""
    return {name: leaf.variable for name, leaf in leaves(module).items() if isinstance(leaf.variable, nnx.Param)}


def variable_paths(module: nnx.Module) -> dict[str, str]:
    """Torch name → path of the variable behind it, as `nnx.iter_graph` and `nnx.state` have it, with dots. Tied names have one path."""
    paths = {id(value): ".".join(map(str, path)) for path, value in nnx.iter_graph(module) if isinstance(value, nnx.Variable)}
    return {name: paths[id(leaf.variable)] for name, leaf in leaves(module).items()}


def state_dict(module: nnx.Module) -> dict[str, Array]:
    """Torch name → numpy array in torch's axis order. Raises `StateDictError` where two variables would have one name."""
    return {name: leaf.to_torch(leaf.variable.get_value()) for name, leaf in leaves(module).items()}


def load_state_dict(module: nnx.Module, state: Mapping[str, Array]) -> None:
    """Put a torch state dictionary into `module`, in place; dtypes are those of `state` (float64 needs JAX's x64 mode).

    Raises `StateDictError`, with the module unchanged, where keys are missing or unexpected, shapes differ, or names of one tied
    variable carry different arrays.
    """
    load_leaves(leaves(module), state)


def load_leaves(targets: Mapping[str, Leaf], state: Mapping[str, Array]) -> dict[str, Any]:
    """Put a torch state dictionary into these leaves of a module, as `load_state_dict` does, which raises the same.

    Gives the arrays that were put into variables of their own, by torch's name.
    """
    problems = [*_key_problems(targets, state), *_shape_problems(targets, state), *_tie_problems(targets, state)]
    if problems:
        raise StateDictError("; ".join(problems))
    stacks: dict[int, tuple[nnx.Variable[Any], list[tuple[tuple[int, ...], Array]]]] = {}
    own: dict[str, Any] = {}
    first: dict[int, str] = {}
    for name, leaf in targets.items():
        if not leaf.index and first.setdefault(id(leaf.variable), name) != name:
            own[name] = own[first[id(leaf.variable)]]  # a tied variable, whose names carry equal arrays
            continue
        array = np.array(leaf.from_torch(state[name]))
        if leaf.index:
            stacks.setdefault(id(leaf.variable), (leaf.variable, []))[1].append((leaf.index, array))
        else:
            # `jnp.array` would compile a program for each shape
            own[name] = jax.device_put(array)
            leaf.variable.set_value(own[name])
    for variable, parts in stacks.values():
        whole = np.empty(variable.get_value().shape, parts[0][1].dtype)
        for index, array in parts:
            whole[index] = array
        variable.set_value(jax.device_put(whole))
    return own


def _key_problems(targets: Mapping[str, Leaf], state: Mapping[str, Array]) -> Iterator[str]:
    missing, unexpected = [name for name in targets if name not in state], [name for name in state if name not in targets]
    if missing:
        yield f"missing keys: {', '.join(missing)}"
    if unexpected:
        yield f"unexpected keys: {', '.join(unexpected)}"


def _shape_problems(targets: Mapping[str, Leaf], state: Mapping[str, Array]) -> Iterator[str]:
    for name, leaf in targets.items():
        if name in state and tuple(np.shape(state[name])) != leaf.shape:
            yield f"{name} has shape {tuple(np.shape(state[name]))}, the module's is {leaf.shape}"


def _tie_problems(targets: Mapping[str, Leaf], state: Mapping[str, Array]) -> Iterator[str]:
    first: dict[tuple[int, tuple[int, ...]], Leaf] = {}
    for name, leaf in targets.items():
        other = first.setdefault((id(leaf.variable), leaf.index), leaf)
        # A missing key is reported already.
        if other is leaf or name not in state or other.name not in state:
            continue
        if not _bit_equal(leaf.from_torch(state[name]), other.from_torch(state[other.name])):
            yield f"{other.name} and {name} are one tied variable but differ"


def _bit_equal(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _walk(node: Any, prefix: str, above: tuple[int, ...], index: tuple[int, ...] = ()) -> Iterator[Leaf]:
    """The leaves below `node`; `above` holds the ids of the nodes that contain it, so that a cycle ends. `index`: its place in stacks of layers."""
    # Only ancestors count: a module that is shared by two parents appears under both paths.
    if id(node) in above:
        return
    if attribute := getattr(type(node), "stacked", ""):
        for number in range(node.count):
            yield from _walk(getattr(node, attribute), f"{prefix}{number}.", (*above, id(node)), (*index, number))
        return
    inside: dict[str, Leaf] = {}
    for leaf in _walk_children(node, prefix, above, index):
        inside[leaf.name] = leaf
        yield leaf
    for name, shared in _of_classes(type(node), "tied_names").items():
        # A class may tie the two under a condition: then it has no variable of that name itself.
        if (tied := inside.get(f"{prefix}{shared}")) is not None and f"{prefix}{name}" not in inside:
            yield replace(tied, name=f"{prefix}{name}")


def _walk_children(node: Any, prefix: str, above: tuple[int, ...], index: tuple[int, ...]) -> Iterator[Leaf]:
    children = list(_children(node))
    own = {id(value) for _, _, value in children if isinstance(value, nnx.Variable)}
    for attribute, name, value in children:
        path = f"{prefix}{name}" if name else prefix.removesuffix(".")
        if isinstance(value, nnx.Variable):
            if _in_state_dict(value):
                yield _leaf(node, attribute, prefix, name, value, index)
        elif isinstance(value, (nnx.Module, list, tuple, dict)) and getattr(value, "registered", True) is not False:
            leaves = _walk(value, f"{path}." if path else "", (*above, id(node)), index)
            # A container of Python may keep what the module has as attributes too: torch knows it by these.
            yield from (leaf for leaf in leaves if type(value) not in (dict, list, tuple) or id(leaf.variable) not in own)


def _children(node: Any) -> Iterator[tuple[str, str, Any]]:
    """(attribute, name in the dictionary, value); the `layers` of an `nnx.Sequential` stand in its place."""
    if isinstance(node, nnx.Sequential):
        names = vars(node).get("names") or [str(index) for index in range(len(node.layers))]
        yield from zip(names, names, node.layers, strict=True)
        yield from ((name, name, value) for name, value in _attributes(node) if name != "layers")
    elif isinstance(node, dict):
        yield from ((str(key), str(key), value) for key, value in node.items())
    elif isinstance(node, (list, tuple)):
        yield from ((str(index), str(index), value) for index, value in enumerate(node))
    else:
        names = _of_classes(type(node), "torch_names")
        yield from ((name, names.get(name, name), value) for name, value in _attributes(node))


def _of_classes(kind: type, table: str) -> dict[str, str]:
    """What a class and its bases say in a table of names, such as `torch_names`."""
    return {name: torch for one in reversed(kind.__mro__) for name, torch in vars(one).get(table, {}).items()}


def _attributes(node: nnx.Module) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in vars(node).items() if not name.startswith("_pytree__"))


def _in_state_dict(variable: nnx.Variable[Any]) -> bool:
    stored_kind = isinstance(variable, (nnx.Param, nnx.BatchStat)) or type(variable) is nnx.Variable
    return stored_kind and hasattr(variable.get_value(), "dtype")


def _leaf(node: Any, attribute: str, prefix: str, name: str, variable: nnx.Variable[Any], index: tuple[int, ...]) -> Leaf:
    for kind in type(node).__mro__:
        rule = RULES.get(kind, {}).get(attribute)
        if rule is not None:
            axes = None if rule.axes is None else rule.axes(variable.get_value().ndim - len(index))
            return Leaf(f"{prefix}{rule.name}", variable, axes, index)
    return Leaf(f"{prefix}{name}", variable, None, index)
