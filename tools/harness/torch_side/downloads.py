"""Lets constructors run that download pretrained weights. Used inside the sandbox, on the original's side, where nothing is downloaded.

The weights of an address are data: a user converts them by `migrate-agent weights`. Here they are a dictionary without entries, and to load
that leaves a module with the values that its constructor made. What is computed from a checkpoint, such as a number of classes, fails.
https://docs.pytorch.org/docs/stable/hub.html#torch.hub.load_state_dict_from_url
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.hub
import torch.utils.model_zoo

_addresses: list[str] = []
"""What was asked for."""
_replaced: list[Callable[..., Any]] = []
"""Torch's own function, once another one stands for it."""


class DownloadedWeights(OrderedDict[str, Any]):
    """Stands for a checkpoint that was not downloaded: it has no entries, and what it is asked for by a name is such a checkpoint too."""

    def __missing__(self, name: str) -> DownloadedWeights:
        return DownloadedWeights()

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        raise TypeError("how many weights there are is not known: nothing is downloaded here")

    def __delitem__(self, name: str) -> None:
        """Delete an entry; one that is not there is none of the weights that the module takes."""
        if name in self:
            super().__delitem__(name)

    def pop(self, name: str, *default: Any) -> Any:
        """An entry, which is gone then."""
        return super().pop(name, *(default or (DownloadedWeights(),)))


def spare_downloads() -> None:
    """From now on, torch's functions that download a state dictionary give `DownloadedWeights`, and modules take these."""
    if _replaced:
        return
    hub: Any = torch.hub
    zoo: Any = torch.utils.model_zoo
    module: Any = torch.nn.Module
    own = hub.load_state_dict_from_url
    _replaced.append(own)
    # Files of torch's makers may have imported it by its name.
    hub.load_state_dict_from_url = zoo.load_url = functools.wraps(own)(_download)
    module.load_state_dict = _loading(module.load_state_dict)


def downloads() -> int:
    """How often weights were asked for in this process."""
    return len(_addresses)


def _download(*args: Any, **options: Any) -> DownloadedWeights:
    bound = inspect.signature(_replaced[0]).bind(*args, **options)
    _addresses.append(str(bound.arguments["url"]))
    return DownloadedWeights()


def _loading(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def load_state_dict(self: torch.nn.Module, state_dict: Mapping[str, Any], *args: Any, **options: Any) -> Any:
        # What code has made of the checkpoint is an ordinary dictionary, without entries too. Torch itself takes none for a module with weights.
        if _addresses and isinstance(state_dict, Mapping) and not state_dict:
            return torch.nn.modules.module._IncompatibleKeys([], [])
        return own(self, state_dict, *args, **options)

    return load_state_dict
