"""The state of torch's optimizers, put into an `nnx.Optimizer` and taken out of it.

A torch state is what `Optimizer.state_dict()` gives (https://pytorch.org/docs/stable/generated/torch.optim.Optimizer.state_dict.html), with
NumPy arrays for tensors: `{"state": {0: {"step": …, "exp_avg": …}}, "param_groups": [{"lr": …, "params": [0, 1]}]}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx

from migrate_agent.tools.programs.tables.registry import Optimizer, optimizers
from migrate_agent.tools.weights import Leaf, leaves, variable_paths

COUNTS = ("ScaleByScheduleState.count", "WrappedScheduleState.count", "InjectStatefulHyperparamsState.count", "MuonState.count")
"""Counters of updates that schedules read. torch keeps theirs in the scheduler."""


class OptimizerStateError(ValueError):
    """An optimizer state that does not fit the optimizer. Names the parameters and slots."""


@dataclass(frozen=True)
class Place:
    """One array of an optax state: the label of its group, `StateClass.field`, and the parameter that it belongs to ("" where to none)."""

    label: str
    slot: str
    parameter: str
    variable: nnx.Variable[Any]
    torch_axes: bool
    """Whether the array lies in torch's axis order whatever the parameter's is."""

    def array(self, leaf: Leaf | None) -> Any:
        """The array in torch's axis order."""
        array = np.asarray(self.variable.get_value())
        if leaf is None or not self._is_of_parameter(array, leaf):
            return array
        return np.array(leaf.part(array)) if self.torch_axes or leaf.axes is None else leaf.to_torch(array)

    def put(self, array: Any, leaf: Leaf | None) -> None:
        """Replace the array by one in torch's axis order. Raises `OptimizerStateError` where the shapes differ."""
        before = self.variable.get_value()
        array = np.asarray(array)
        if leaf and not self.torch_axes and array.ndim == len(leaf.axes or ()):
            array = leaf.from_torch(array)
        stacked = leaf is not None and bool(leaf.index) and self._is_of_parameter(before, leaf)
        old = leaf.part(before) if leaf and stacked else before
        if array.shape != old.shape:
            raise OptimizerStateError(f"{self.slot} of {self.parameter or 'all parameters'} has shape {array.shape}, not {old.shape}")
        value = jnp.asarray(array, before.dtype)
        self.variable.set_value(before.at[leaf.index].set(value) if leaf and stacked else value)

    def _is_of_parameter(self, array: Any, leaf: Leaf) -> bool:
        """Whether the array has the parameter's axes, and not one number for the whole of it."""
        count = len(leaf.index) + len(leaf.shape)
        return bool(array.ndim == count) if leaf.index or not self.torch_axes else False


def places(optimizer: nnx.Optimizer[Any]) -> list[Place]:
    """Every array of the optimizer's optax state."""
    return list(_places(optimizer.opt_state, "", "", (), False))


def _places(node: Any, label: str, slot: str, parameter: tuple[str, ...], torch_axes: bool) -> Iterator[Place]:
    if isinstance(node, nnx.Variable):
        # Parameters of other groups have an empty node in their place.
        if not isinstance(node.get_value(), tuple):
            yield Place(label, slot, ".".join(parameter), node, torch_axes)
    elif isinstance(node, tuple) and hasattr(node, "_fields"):
        kind = type(node).__name__
        for field in node._fields:
            value = getattr(node, field)
            if kind == "PartitionState":
                for group, state in value.items():
                    yield from _places(state, group, "", (), torch_axes)
            else:
                yield from _places(value, label, f"{kind}.{field}", (), torch_axes or kind == "TorchAxesState")
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from _places(value, label, slot, (*parameter, str(key)), torch_axes)
    elif isinstance(node, (tuple, list)):
        for value in node:
            yield from _places(value, label, slot, parameter, torch_axes)


def load_optimizer(
    optimizer: nnx.Optimizer[Any],
    model: nnx.Module,
    name: str,
    state: Mapping[str, Any],
    groups: Sequence[Sequence[str]] | None = None,
    updates: int | None = None,
) -> None:
    """Put the state of the torch optimizer `name` (`torch.optim.AdamW`) into `optimizer`, in place.

    `groups` holds torch's names of the parameters of each group, in torch's order; without it the state must name them (`param_names`, which
    torch keeps where the program gave names). `updates` is the number of updates so far, which schedules count; without it, it is what the state counts.
    Raises `OptimizerStateError` where the state does not fit.
    """
    by_parameter = _by_parameter(state, groups or _groups(state))
    paths, by_name = variable_paths(model), leaves(model)
    unknown = sorted(set(by_parameter) - set(paths))
    if unknown:
        raise OptimizerStateError(f"the model has no parameters {', '.join(unknown)}")
    names_at: dict[str, list[str]] = {}
    for parameter in by_parameter:
        names_at.setdefault(paths[parameter], []).append(parameter)
    count = _count(by_parameter, updates)
    every = places(optimizer)
    for entry in every:
        key = _key(optimizers()[name], entry)
        if entry.slot in COUNTS:
            if count is None:
                raise OptimizerStateError(f"the state of {name} does not count updates, and a schedule needs their number")
            entry.put(count, None)
        elif key and entry.parameter:
            for parameter in names_at.get(entry.parameter, ()):
                _put(entry, by_parameter[parameter], key, by_name.get(parameter))
        elif key:
            group = {
                name for other in every if other.label == entry.label and other.parameter for name in names_at.get(other.parameter, ())
            }
            _put_shared(entry, [slots for parameter, slots in by_parameter.items() if parameter in group], key)
    optimizer.step.set_value(jnp.asarray(count or 0, optimizer.step.get_value().dtype))


def save_optimizer(
    optimizer: nnx.Optimizer[Any], model: nnx.Module, name: str, param_groups: Sequence[Mapping[str, Any]], groups: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """The state of `optimizer` as the torch optimizer `name` loads it: `state` and `param_groups`, arrays in torch's axis order.

    `param_groups` are torch's (hyper-parameters and indices of parameters), which come out as they are; `groups` holds torch's names of the
    parameters of each.
    """
    row, paths, by_name = optimizers()[name], variable_paths(model), leaves(model)
    every = places(optimizer)
    label_of = {entry.parameter: entry.label for entry in every if entry.parameter}
    state: dict[int, dict[str, Any]] = {}
    for group, parameters in zip(param_groups, groups, strict=True):
        for index, parameter in zip(group["params"], parameters, strict=True):
            path = paths[parameter]
            # Without a place of its own the parameter has no state: plain SGD, or a frozen parameter.
            own = [p for p in every if p.parameter == path or (not p.parameter and p.label == label_of.get(path))]
            slots = _saved(row, own, by_name[parameter], int(optimizer.step.get_value()))
            if slots:
                state[index] = slots
    return {"state": state, "param_groups": [dict(group) for group in param_groups]}


def _saved(row: Optimizer, own: Sequence[Place], leaf: Leaf, updates: int) -> dict[str, Any]:
    """The slots of one parameter, of the places that it has alone or shares."""
    slots: dict[str, Any] = {}
    for entry in own:
        key, array = _key(row, entry), entry.array(leaf if entry.parameter else None)
        # Adafactor's fields that a parameter does not need are empty.
        if key and entry.slot != "DampenedTraceState.count" and array.size:
            slots[_transposed(entry, key, leaf)] = array
    if slots and row.slots.get("step") == ():
        slots["step"] = np.asarray(updates)
    # torch counts in float32.
    return {key: array.astype(np.float32) if key == "step" else array for key, array in slots.items()}


def _key(row: Optimizer, entry: Place) -> str:
    """The slot of torch's that a place holds, or ""."""
    keys = [key for key, slots in row.slots.items() if entry.slot in slots]
    # The count of this state is no step: it says whether the buffer is filled.
    return keys[0] if keys else "momentum_buffer" if entry.slot == "DampenedTraceState.count" else ""


def _transposed(entry: Place, key: str, leaf: Leaf | None) -> str:
    """The slot that takes the place of rows or columns where the parameter lies transposed."""
    swapped = {"row_var": "col_var", "col_var": "row_var"}
    return swapped.get(key, key) if leaf and leaf.axes == (1, 0) and not entry.torch_axes else key


def _groups(state: Mapping[str, Any]) -> list[list[str]]:
    groups = state["param_groups"]
    # The model's own order would not do: NNX changes the order of attributes under `jit`.
    if not all("param_names" in group for group in groups):
        raise OptimizerStateError("the state does not name its parameters: say which are in each group, in torch's order")
    return [list(group["param_names"]) for group in groups]


def _by_parameter(state: Mapping[str, Any], groups: Sequence[Sequence[str]]) -> dict[str, Mapping[str, Any]]:
    """Torch's name → slots of the parameter; parameters that have had no gradient yet have none."""
    given = [len(group["params"]) for group in state["param_groups"]]
    if given != [len(group) for group in groups]:
        raise OptimizerStateError(f"the state's groups hold {given} parameters, the program's {[len(group) for group in groups]}")
    result: dict[str, Mapping[str, Any]] = {}
    for group, parameters in zip(state["param_groups"], groups, strict=True):
        for index, parameter in zip(group["params"], parameters, strict=True):
            result[parameter] = state["state"].get(index, state["state"].get(str(index), {}))
    return result


def _count(by_parameter: Mapping[str, Mapping[str, Any]], updates: int | None) -> int | None:
    if updates is not None:
        return updates
    return max((int(slots["step"]) for slots in by_parameter.values() if "step" in slots), default=None)


def _put(entry: Place, slots: Mapping[str, Any], key: str, leaf: Leaf | None) -> None:
    value = slots.get(_transposed(entry, key, leaf))
    # torch makes the slots with the first gradient, and optax before it.
    if value is not None:
        entry.put(value, leaf)


def _put_shared(entry: Place, members: Sequence[Mapping[str, Any]], key: str) -> None:
    """Fill a place that all parameters of a group share. Raises `OptimizerStateError` where torch's values differ."""
    if key == "momentum_buffer":
        entry.put(int(any(slots.get(key) is not None for slots in members)), None)
        return
    values = sorted({float(slots[key]) for slots in members if key in slots})
    if len(values) > 1:
        raise OptimizerStateError(f"{key} differs among the parameters of one group ({values[0]:g} … {values[-1]:g}): some had no gradient")
    if values:
        entry.put(values[0], None)
