"""Reads torch's own files inside the sandbox: a pickle is a program, so it is loaded there, and with `weights_only`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NAME = "tensors.safetensors"
DEPTH = 4
"""Depth to which nested dictionaries are searched for state dictionaries."""


def read(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: all tensors of a file, written as safetensors under numbers.

    Gives `groups`: for each dictionary of tensors inside, its `path` (`["state_dict"]`) and `names` (name → number); or an `error`.
    """
    import torch
    from safetensors.torch import save_file

    try:
        saved = torch.load(inputs["checkpoint"], map_location="cpu", weights_only=True)
    except Exception as error:
        return {"error": _reason(error)}
    if isinstance(saved, torch.Tensor):
        return {"error": "it holds one tensor, and no state dictionary"}
    tensors: dict[str, Any] = {}
    groups = []
    for path, group in _groups(saved, ()):
        names = {}
        for name, value in group.items():
            if value.layout != torch.strided or value.is_quantized:
                return {
                    "error": f"{name} is {'quantized' if value.is_quantized else 'sparse'}, which has no counterpart: make it dense first"
                }
            names[name] = str(len(tensors))
            # safetensors refuses tensors that share memory, such as tied weights.
            tensors[names[name]] = value.detach().clone().contiguous()
        groups.append({"path": list(path), "names": names})
    if not tensors:
        return {"error": "it holds no dictionary of tensors: save `model.state_dict()`"}
    save_file(tensors, output / NAME)
    return {"groups": groups}


def _groups(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    import torch

    if not isinstance(value, Mapping) or len(path) > DEPTH:
        return
    own = {name: item for name, item in value.items() if isinstance(name, str) and isinstance(item, torch.Tensor)}
    if own:
        yield path, own
    for name, item in value.items():
        yield from _groups(item, (*path, str(name)))


def _reason(error: Exception) -> str:
    """One line of advice for a file that does not load."""
    text = " ".join(str(error).split())
    if "TorchScript" in text:
        return "it is a TorchScript archive: save `torch.jit.load(...).state_dict()` instead"
    if "Unsupported global" in text or "WeightsUnpickler" in text:
        type_name = text.partition("GLOBAL ")[2].partition(" ")[0]
        return f"it holds other things than tensors ({type_name or 'objects'}), and unpickling those runs code: save `model.state_dict()` alone"
    return f"torch cannot load it: {type(error).__name__}: {text[:160]}"
