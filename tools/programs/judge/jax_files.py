"""What a JAX program left in files, whoever wrote it: orbax checkpoints, `.npz` and `.safetensors`. Runs inside the sandbox."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from migrate_agent.tools.programs.judge.fingerprints import fingerprint

METADATA = "_METADATA"
"""The file of an orbax checkpoint that says which arrays it has."""


def jax_files(work: Path, names: Sequence[str], layers: Collection[int] = ()) -> list[dict[str, Any]]:
    """Of each file or folder of arrays or plain numbers its path, the fingerprints of its arrays, and its numbers.

    `layers` are the numbers of layers that the program's modules hold as stacks: of an array with such a first axis, what each layer has counts too.
    """
    rows = []
    for name in names:
        arrays, numbers = _read(work / name)
        if arrays or numbers:
            parts = [part for array in arrays for part in (array, *(array if array.ndim > 1 and len(array) in layers else ()))]
            tensors = [fingerprint(array) for array in parts if array.size > 1 and array.dtype.kind == "f"]
            scalars = [float(array.reshape(-1)[0]) for array in arrays if array.size == 1 and array.dtype.kind in "fiu"]
            rows.append({"path": name, "tensors": tensors, "numbers": [*numbers, *scalars]})
    return rows


def _read(path: Path) -> tuple[list[Any], list[float]]:
    if path.name == METADATA:
        return _orbax(path.parent), []
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return [archive[name] for name in archive.files], []
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return list(load_file(str(path)).values()), []
    # What orbax says of arrays has numbers too: their lengths of axes.
    about = path.name.startswith("_") or "array_metadatas" in path.parts
    return [], [] if about else list(_numbers(path))


def _orbax(folder: Path) -> list[Any]:
    import jax
    import jax.numpy as jnp
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        tree = checkpointer.restore(folder.absolute())
    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype") and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)]
    return [np.asarray(leaf) for leaf in leaves]


def _numbers(path: Path) -> Iterator[float]:
    """The numbers of a small JSON file."""
    if path.stat().st_size > 2**20:
        return
    try:
        todo = [json.loads(path.read_text())]
    except (ValueError, UnicodeDecodeError):
        return
    while todo:
        node = todo.pop()
        todo += list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
        if isinstance(node, (int, float)) and not isinstance(node, bool):
            yield float(node)
