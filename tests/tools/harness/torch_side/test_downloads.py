"""Constructors that download pretrained weights: nothing is downloaded, and the module keeps its own values."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.hub
import torch.utils.model_zoo
from torch import nn

from migrate_agent.tools.harness.torch_side import downloads
from migrate_agent.tools.harness.torch_side.downloads import DownloadedWeights, spare_downloads

URL = "https://no.such.host/weights.pth"
FUNCTIONS = ((torch.hub, "load_state_dict_from_url"), (torch.utils.model_zoo, "load_url"))
State = dict[str, Any]


@pytest.fixture(autouse=True)
def spared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Torch's own functions, before and after."""
    for file, name in FUNCTIONS:  # an import by another test in this process may have replaced them
        monkeypatch.setattr(file, name, inspect.unwrap(getattr(file, name)))
    monkeypatch.setattr(nn.Module, "load_state_dict", inspect.unwrap(nn.Module.load_state_dict))
    monkeypatch.setattr(downloads, "_replaced", [])
    monkeypatch.setattr(downloads, "_addresses", [])
    spare_downloads()
    yield


def filtered(layer: nn.Module, state: Any) -> State:
    own = layer.state_dict()
    own.update({name: value for name, value in state.items() if name in own})
    return own


FORMS: dict[str, Callable[[nn.Module, Any], Any]] = {
    "at once": lambda layer, state: state,
    "filtered": filtered,
    "renamed": lambda layer, state: {name.replace("module.", ""): value for name, value in state.items()},
    "in order": lambda layer, state: OrderedDict(state),
    "an entry of the checkpoint": lambda layer, state: state["state_dict"],
    "taken out": lambda layer, state: state.pop("model"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize(("file", "name"), FUNCTIONS)
def test_a_module_keeps_its_own_values(file: ModuleType, name: str, form: Callable[[nn.Module, Any], Any]) -> None:
    layer = nn.Linear(2, 3)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    state = getattr(file, name)(URL, map_location="cpu")
    del state["fc.weight"]
    missing, unexpected = layer.load_state_dict(form(layer, state))
    assert not missing
    assert not unexpected
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())
    assert downloads.downloads() == 1


COMPUTED: dict[str, Callable[[DownloadedWeights], Any]] = {
    "a number of entries": len,
    "a value": lambda state: state["fc.weight"].mean(0),
    "the last entry": lambda state: state[list(state)[-1]],
    "a parameter": lambda state: nn.Parameter(state["fc.weight"]),
}


@pytest.mark.parametrize("compute", COMPUTED.values(), ids=COMPUTED.keys())
def test_what_is_computed_from_weights_fails(compute: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError, IndexError)):
        compute(torch.hub.load_state_dict_from_url(URL))


def test_without_a_download_an_empty_state_fails() -> None:
    with pytest.raises(RuntimeError, match="Missing key"):
        nn.Linear(2, 3).load_state_dict({})


def test_torch_is_changed_once() -> None:
    replaced = torch.hub.load_state_dict_from_url
    spare_downloads()
    assert torch.hub.load_state_dict_from_url is replaced
