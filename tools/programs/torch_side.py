"""Reads and writes torch's own files inside the sandbox, with all that they hold beside tensors. A pickle is a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TENSORS, TREE, FILE = "tensors.safetensors", "tree.json", "checkpoint.pt"


def read(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: a checkpoint as a tree in JSON, with its tensors as safetensors under numbers. Gives `{}`, or an `error`.

    A node is `{"dict": [[key, node], …]}`, `{"list": [node, …]}`, `{"tensor": number}`, `{"value": text, number or null}`, or `{"left_out": type}`.
    """
    import torch
    from safetensors.torch import save_file

    from migrate_agent.tools.checkpoint.torch_side import _reason

    try:
        saved = torch.load(inputs["checkpoint"], map_location="cpu", weights_only=True)
    except Exception as error:
        return {"error": _reason(error)}
    tensors: dict[str, torch.Tensor] = {}
    tree = _node(saved, tensors)
    save_file(tensors, output / TENSORS)
    (output / TREE).write_text(json.dumps(tree), encoding="utf-8")
    return {}


def _node(value: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    import torch

    if isinstance(value, torch.Tensor):
        number = str(len(tensors))
        # safetensors refuses tensors that share memory, such as tied weights.
        tensors[number] = value.detach().clone().contiguous()
        return {"tensor": number}
    if isinstance(value, Mapping):
        return {"dict": [[key if isinstance(key, (int, float, str)) else str(key), _node(item, tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list": [_node(item, tensors) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    return {"left_out": type(value).__name__}


def write(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: the inverse of `read`, from `inputs["tree"]` and `inputs["tensors"]` to a file that `torch.load` reads."""
    import torch
    from safetensors.torch import load_file

    tensors = load_file(inputs["tensors"])
    torch.save(_value(json.loads(inputs["tree"].read_text(encoding="utf-8")), tensors), output / FILE)
    return {}


def _value(node: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    if "tensor" in node:
        return tensors[node["tensor"]]
    if "dict" in node:
        return {key: _value(item, tensors) for key, item in node["dict"]}
    return [_value(item, tensors) for item in node["list"]] if "list" in node else node.get("value")
