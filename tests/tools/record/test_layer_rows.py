"""Rows of layers for parameters whose layers a class walks through."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from migrate_agent.tools.record.guessing.objects.layer_rows import layer_rows


class Named(nn.Module):
    def __init__(self, vgg: nn.Module) -> None:
        super().__init__()
        self.layers = vgg
        self.names = {"3": "relu1_2", "8": "relu2_2"}

    def forward(self, x: Any) -> Any:
        return [layer for name, layer in self.layers._modules.items() if name in self.names]


class Walked(nn.Module):
    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.net = nn.Sequential(*list(backbone.children()))

    def forward(self, x: Any) -> Any:
        return self.net(x)


class Called(nn.Module):
    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.net = backbone

    def forward(self, x: Any) -> Any:
        return self.net(x)


@pytest.mark.parametrize(("cls", "parameter", "count"), [(Named, "vgg", 9), (Walked, "backbone", 4), (Called, "backbone", 0)])
def test_a_row_has_as_many_layers_as_the_class_names(cls: type, parameter: str, count: int) -> None:
    texts = layer_rows(cls, parameter)
    row = eval(texts[0], {"torch": torch}) if texts else nn.Sequential()
    assert len(row) == count
    if texts:
        assert row(torch.randn(1, 3, 8, 8)).shape == (1, 3, 8, 8)
