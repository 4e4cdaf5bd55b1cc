"""Arguments of a call that its code takes apart: `x, (h, c) = inputs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from migrate_agent.tools.record.guessing.feedback import STATE
from migrate_agent.tools.record.guessing.tensor_uses import Parts
from migrate_agent.tools.record.guessing.values import Sequence as Items
from migrate_agent.tools.record.guessing.values import Tensor, Value


def taken_apart(parts: Parts, main: Tensor, instance: Any, part: Callable[[str, Tensor], Value]) -> Iterator[Value]:
    """Tuples with the main tensor first. Where names say that parts are states, those that the recurrent layers of the instance take come first; of all
    other names `part` says what they are."""
    yield from dict.fromkeys(_tuple(parts, main, states, part) for states in (*_states(instance, main), ()))


def _tuple(parts: Parts, main: Tensor, states: Sequence[Tensor], part: Callable[[str, Tensor], Value], outermost: bool = True) -> Value:
    items: list[Value] = []
    for name in parts:
        if not isinstance(name, str):
            items.append(_tuple(name, main, states, part, outermost=False))
        elif outermost and not items:
            items.append(main)
        else:
            items.append(states[0] if states and STATE.fullmatch(name.lower()) else part(name, main))
    return Items(tuple(items), "()")


def _states(instance: Any, main: Tensor) -> Iterator[tuple[Tensor]]:
    """What each recurrent layer of an instance takes as its state for the samples of the main tensor."""
    import torch

    for layer in instance.modules() if isinstance(instance, torch.nn.Module) else ():
        if isinstance(layer, torch.nn.RNNCellBase):
            yield (Tensor((*main.shape[:1], layer.hidden_size)),)
        elif isinstance(layer, torch.nn.RNNBase):
            yield (Tensor((layer.num_layers * (1 + layer.bidirectional), *main.shape[:1], layer.hidden_size)),)
