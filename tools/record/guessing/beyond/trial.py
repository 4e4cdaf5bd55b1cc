"""One call of a further example: what it ran, what its arguments stand for, and what it gave."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from migrate_agent.tools.harness.common import methods, reach
from migrate_agent.tools.harness.common.example_text import build, call_arguments, in_mode, make_namespace
from migrate_agent.tools.harness.common.trees import encode
from migrate_agent.tools.record.guessing.arguments import Call
from migrate_agent.tools.record.guessing.trials.own_seconds import WAITING
from migrate_agent.tools.record.guessing.trials.trial import MOST_SECONDS, leaves, time_limit
from migrate_agent.tools.types import Example

MOST_WIDTHS = 4
"""Sizes of a module's parameters that an optional argument may have."""


class Trial(NamedTuple):
    """What a call showed: the places that it ran, the shape of its first tensor, and sizes that only the module's parameters have."""

    ran: frozenset[int]
    shape: Sequence[int] | None
    widths: Sequence[int] = ()


def changed_names(one: str, other: str, parameters: Sequence[inspect.Parameter]) -> set[str]:
    """The parameters whose text differs between two argument lists, and names of arguments inside of these."""
    names = [parameter.name for parameter in parameters]
    before, after = (call.by_name(names) if (call := Call.of(text)) else {} for text in (one, other))
    different = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return different | {word for name in different for word in re.findall(r"(\w+)(?:=|':)", after.get(name, ""))}


def arguments_of(module: Any, name: str, example: Example, parameters: Sequence[inspect.Parameter]) -> dict[str, Any]:
    """What the first arguments of an example's call stand for, by name; nothing where they cannot be made."""
    try:
        args = call_arguments(example, make_namespace(module, example))[0]
    except Exception:  # its values depend on what only a whole run makes
        return {}
    return dict(zip([parameter.name for parameter in parameters], args, strict=False))


def value_of(text: str, namespace: dict[str, Any]) -> Any:
    """What a name stands for in the example, or None."""
    try:
        return eval(text, namespace)
    except Exception:  # it may be known while the example runs alone
        return None


def result_of(module: Any, name: str, example: Example, parameters: Sequence[inspect.Parameter]) -> tuple[dict[str, Any], Any]:
    """The arguments of an example by name, as the call leaves them, and what it gives in evaluation mode. Raises the errors of the original."""
    import torch

    torch.manual_seed(0)
    with time_limit(MOST_SECONDS), torch.no_grad():
        instance, args, kwargs = build(module, name, example)
        result = methods.bound(in_mode(instance, training=False), example.method)(*args, **kwargs)
    return dict(zip([parameter.name for parameter in parameters], args, strict=False)) | kwargs, result


def unit_of(module: Any, name: str) -> Any:
    value = module
    for part in name.split("."):
        value = getattr(value, part)
    return value


def trial_of(module: Any, name: str, example: Example) -> Trial:
    """What an example runs, its constructor too. Raises the errors of the original."""
    import numpy
    import torch

    from migrate_agent.tools.harness.torch_side.module import is_leaf  # here alone: it imports torch

    torch.manual_seed(0)
    with time_limit(MOST_SECONDS, WAITING):
        reach.take()
        instance, args, kwargs = build(module, name, example)
        tensors = [value for value in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        result = methods.bound(in_mode(instance, training=False), example.method)(*args, **kwargs)
        ran = reach.take()
        encode(result, [], is_leaf)  # raises on what cannot be compared
        every = leaves(result)
        output_tensors = [value for value in every if isinstance(value, torch.Tensor)]
        # A metric reads numbers out of the tensors that it is given.
        kinds = (int, float, numpy.number, numpy.ndarray)
        numbers = [value for value in every if isinstance(value, kinds) and tensors and not isinstance(unit_of(module, name), type)]
        if not (output_tensors or numbers) or any(
            value.is_floating_point() and not bool(torch.isfinite(value).all()) for value in output_tensors
        ):
            raise ValueError("it gives no finite tensor")
    shape = list(tensors[0].shape) if tensors else None
    sizes = [size for value in instance.parameters() for size in value.shape] if isinstance(instance, torch.nn.Module) else []
    widths = [size for size in dict.fromkeys(sizes) if size > 1 and size not in (shape or ())]
    return Trial(ran, shape, widths[:MOST_WIDTHS])
