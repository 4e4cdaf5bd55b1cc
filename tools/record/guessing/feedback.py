"""State that a call gives and that another call takes: a cache of keys and values, a hidden state. Used inside the sandbox."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from migrate_agent.tools.harness.common import methods
from migrate_agent.tools.harness.common.trees import is_object
from migrate_agent.tools.record.guessing.values import Fields, Tensor, Value, tensors, text
from migrate_agent.tools.record.guessing.values import Sequence as Items

STATE = re.compile(
    r"(.*_)?(cache\w*|kvs?|past\w*|prev\w*|states?|hidden\w*|mem\w*|mems|carry|recurrent|h|c|h0|c0|h_?0|c_?0|hx|cx|hc|buffers?)(_.*)?|layer_past"
)
"""Names of arguments that take the state of an earlier call."""
BATCH = re.compile(r"(n_?)?b(s|sz|atch(_?size)?)|n|num_(samples|envs)")
"""Names of arguments that say how many samples there are."""
FIRST_STATES = re.compile(r"init|begin|start|zero|empty|hidden|state|mem", re.I)
"""Names of methods that give the state of a first call."""
MOST_PARTS = 4
"""Parts of one result that are handed in."""


def fed_back(
    values: Mapping[str, str],
    parameters: Sequence[inspect.Parameter],
    arguments: Mapping[str, Any],
    result: Callable[[Mapping[str, str]], Any],
) -> Iterator[dict[str, str]]:
    """Other argument lists of a call: each argument that may take a state and is None gets a part of the call's own result, as random numbers of its form.

    `values` are the texts of the call by parameter, `arguments` what the first of them stand for. `result` runs the call with some of the texts
    changed, and gives its result. A bool that is turned comes along where the result has no such part without it (`use_cache`). The inputs are those
    of the call, or else one step of them.
    """
    takers = _takers(values, parameters)
    if not takers:
        return
    turned: list[dict[str, str]] = [{}, *({item.name: str(not item.default)} for item in parameters if isinstance(item.default, bool))]
    for change in turned:
        try:
            parts = parts_of(result({**values, **change}))
        except Exception:  # the call does not run with this bool
            continue
        for taker in takers:
            for part in parts:
                for step in ({}, one_step(arguments)):
                    yield {**values, **change, **step, taker: text(part)}


def given_by_methods(
    values: Mapping[str, str], parameters: Sequence[inspect.Parameter], make: Callable[[], Any], batch: int
) -> Iterator[dict[str, str]]:
    """Other argument lists of a call: each argument that may take a state and is None gets what a method of the unit gives without arguments, or for so
    many samples, as `init_hidden(batch_size)` does. `make` gives a new instance. Raises its errors."""

    takers = _takers(values, parameters)
    for part in states_of_methods(make, batch) if takers else ():
        yield from ({**values, taker: text(part)} for taker in takers)


def states_of_methods(make: Callable[[], Any], batch: int, names: re.Pattern[str] = re.compile("")) -> Iterator[Value]:
    """What methods of a module with such names give without arguments, or for so many samples. `make` gives a new instance. Raises its errors."""
    import torch

    for name in methods.public_methods(type(make()), torch.nn.Module):
        if methods.is_property(type(make()), name) or not names.search(name):
            continue
        instance = make()
        needed = [item for item in inspect.signature(methods.bound(instance, name)).parameters.values() if _is_needed(item)]
        if len(needed) > 1 or not all(BATCH.fullmatch(item.name) for item in needed):
            continue
        try:
            part = value_of(methods.bound(instance, name)(*[batch for _ in needed]))
        except Exception:  # it is called otherwise
            continue
        if part is not None and any(tensors(part)):
            yield part


def _is_needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _takers(values: Mapping[str, str], parameters: Sequence[inspect.Parameter]) -> list[str]:
    """The names of those arguments that may take a state and are None."""
    return [
        item.name for item in parameters if item.default is None and values.get(item.name, "None") == "None" and STATE.fullmatch(item.name)
    ]


def refilled(values: Mapping[str, str], arguments: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Other argument lists of a call that ran, each with one plain object made with what it holds since: `cache=Cache(states=[…])` for `cache=Cache()`. What
    one call of streaming code wrote, the next one reads. `arguments` are what the `values` stand for."""
    for name, value in arguments.items():
        node = ast.parse(values[name], mode="eval").body if is_object(value) and name in values else None
        if not isinstance(node, ast.Call):
            continue
        parts = [part for item in vars(value).values() if isinstance(item, (list, tuple, dict)) and (part := value_of(item)) is not None]
        texts = list(dict.fromkeys(text(part) for part in parts if any(tensors(part))))[:MOST_PARTS]
        for parameter in inspect.signature(type(value)).parameters.values():
            if parameter.default is None:
                yield from ({**values, name: f"{ast.unparse(node.func)}({parameter.name}={part})"} for part in texts)


def parts_of(result: Any) -> list[Value]:
    """The parts of a result that may be a state, nested ones whole: all of a tuple but its first, the values of names, and the result itself."""
    named = _items(result)
    own = [*list(result)[1:], result] if isinstance(result, (tuple, list)) else list(named.values())
    return [value for part in own if (value := value_of(part)) is not None and any(tensors(value))][:MOST_PARTS]


def _items(result: Any) -> Mapping[str, Any]:
    if isinstance(result, dict):
        return result
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return {}


def value_of(part: Any) -> Value | None:
    """Tensors, lists, tuples (with names too) and dictionaries of them as a value that can be written; None for anything else."""
    import torch

    if isinstance(part, torch.Tensor):
        return tensor_like(part)
    if part is None or isinstance(part, (bool, int, float)):
        return repr(part)
    if type(part) is list or isinstance(part, tuple):
        items = [value_of(item) for item in part]
        return None if None in items else Items(tuple(items), "[]" if isinstance(part, list) else "()")  # type: ignore[arg-type]
    if type(part) is dict and all(isinstance(key, str) for key in part):
        fields = {key: value_of(item) for key, item in part.items()}
        return None if None in fields.values() else Fields(tuple(fields.items()))  # type: ignore[arg-type]
    return None


def tensor_like(tensor: Any) -> Tensor:
    """Random numbers of a tensor's shape and kind: where none of its numbers is below zero, as where code takes their logarithm, none is."""
    import torch

    shape = tuple(tensor.shape)
    if tensor.dtype == torch.bool:
        return Tensor(shape, "bool")
    if tensor.is_complex():
        return Tensor(shape, "complex")
    if tensor.is_floating_point():
        return Tensor(shape, "positive" if tensor.numel() and bool((tensor >= 0).all()) else "normal")
    return Tensor(shape, "integer", max(int(tensor.max()) + 1, 2) if tensor.numel() else 2)


def one_step(arguments: Mapping[str, Any]) -> dict[str, str]:
    """The first tensor of a call, cut to one step along its second axis; nothing where it has none."""
    import torch

    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            shape = tuple(value.shape)
            like = tensor_like(value)
            return {name: text(dataclasses.replace(like, shape=(shape[0], 1, *shape[2:])))} if len(shape) > 1 and shape[1] > 1 else {}
    return {}
