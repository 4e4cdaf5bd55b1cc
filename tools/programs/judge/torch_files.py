"""What a program left in torch's files: fingerprints of tensors, and plain numbers. Runs inside the sandbox, on the original's side."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from migrate_agent.tools.programs.judge.fingerprints import fingerprint

MOST_BYTES = 64 * 2**20


def torch_files(work: Path, names: Sequence[str]) -> dict[str, dict[str, Any] | None]:
    """File → the fingerprints of its tensors by name and the numbers of its outermost dictionary; `None` for one that cannot be read."""
    paths = {name: work / name for name in names}
    return {name: _read(path) for name, path in paths.items() if zipfile.is_zipfile(path) and _is_torch(path)}


def _is_torch(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/data.pkl") for name in archive.namelist())


def _read(path: Path) -> dict[str, Any] | None:
    import torch

    if path.stat().st_size > MOST_BYTES:
        return None
    try:
        tree = torch.load(
            path, weights_only=False, map_location="cpu", pickle_module=SimpleNamespace(Unpickler=_Unpickler, __name__="pickle")
        )
    except Exception:
        return None
    tensors = {name: fingerprint(tensor.detach().numpy()) for name, tensor in _tensors(tree, "") if tensor.is_floating_point()}
    top = tree if isinstance(tree, Mapping) else {}
    numbers = {str(k): float(v) for k, v in top.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    return {"tensors": tensors, "numbers": numbers}


class _Unpickler(pickle.Unpickler):
    """Reads pickled modules of a script that has ended, whose classes are gone: what it read of them is what any module holds."""

    def find_class(self, module: str, name: str) -> Any:
        """The class, or one that has its place."""
        import torch

        try:
            return super().find_class(module, name)
        except (AttributeError, ImportError):
            return type(name, (torch.nn.Module,), {})


def _tensors(tree: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Name → tensor of more than one number, of nested containers and modules."""
    import torch

    if isinstance(tree, torch.nn.Module):
        tree = tree.state_dict() if "_modules" in vars(tree) else {}
    if isinstance(tree, torch.Tensor):
        if tree.numel() > 1:
            yield name, tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _tensors(value, f"{name}.{key}".lstrip("."))
    elif isinstance(tree, (list, tuple)):
        for number, value in enumerate(tree):
            yield from _tensors(value, f"{name}.{number}".lstrip("."))
