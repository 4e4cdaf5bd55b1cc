"""Rows of layers for a parameter of which the class walks through the layers: `for name, layer in self.vgg._modules.items()`."""

from __future__ import annotations

import ast
from typing import Any

from migrate_agent.tools.record.guessing.choices import nodes_of

WALKS = frozenset({"_modules", "children", "named_children"})
"""Attributes and methods by which code comes to the layers of a module."""
FEW, MOST = 4, 64
LAYER = "torch.nn.ReLU() if at % 2 else torch.nn.Conv2d(3, 3, 3, padding=1)"
"""Layers that keep the size of an image, as those of a trained network's beginning nearly do."""


def layer_rows(cls: Any, parameter: str) -> tuple[str, ...]:
    """A row of layers for images; as many as the texts of the class that are numbers ask for: `{"3": "relu1_2", "15": "relu3_3"}` names 16."""
    if not isinstance(cls, type):
        return ()
    attributes = {
        target.attr
        for node in nodes_of(vars(cls).get("__init__"))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == parameter
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    methods = [value for value in vars(cls).values() if callable(value)]
    nodes = [node for method in methods for node in nodes_of(method)]
    walked = any(isinstance(node, ast.Attribute) and node.attr in WALKS and _name(node.value) in {parameter, *attributes} for node in nodes)
    if not walked:
        return ()
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    count = max((int(text) + 1 for text in texts if text.isdecimal() and int(text) < MOST), default=FEW)
    return (f"torch.nn.Sequential(*[{LAYER} for at in range({max(count, 2)})])",)


def _name(node: ast.expr) -> str:
    """`vgg` of `vgg` and of `self.vgg`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
