"""Checkpoints of training scripts: trees of arrays and plain values, in a folder by orbax."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from etils import epath
from flax import nnx


def object_state(item: Any) -> Any:
    """The state of a module or an optimizer as nested dictionaries of arrays, as `state_dict()` gives it in torch."""
    own = getattr(item, "state_dict", None)
    # Copies, since a compiled step gives the memory of what it updates to its new values.
    return own() if own is not None else jax.tree.map(_copy, nnx.to_pure_dict(nnx.state(item)))


def _copy(array: Any) -> Any:
    keys: Any = isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
    key_data: Any = jax.random.key_data
    return jax.random.wrap_key_data(jnp.copy(key_data(array))) if keys else jnp.copy(array)


def load_object_state(item: Any, state: Any) -> None:
    """Put what `object_state` gave into a module or an optimizer of the same kind. Raises `KeyError` or `ValueError` where it does not fit."""
    own = getattr(item, "load_state_dict", None)
    if own is not None:
        own(state)
        return
    current = nnx.state(item)
    nnx.replace_by_pure_dict(current, state)
    nnx.update(item, current)


def write_checkpoint(tree: Any, path: Any) -> None:
    """Write a tree of dictionaries, lists, arrays and plain values to the folder `path`, in place of what lies there."""
    arrays: dict[str, Any] = {}
    outline = _outline(tree, arrays)
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        # orbax refuses a checkpoint without arrays.
        saved = ocp.args.StandardSave(arrays or {"none": np.zeros(())})
        parts = ocp.args.Composite(arrays=saved, outline=ocp.args.JsonSave({"tree": outline}))
        checkpointer.save(epath.Path(path).absolute(), parts, force=True)


def read_checkpoint(path: Any) -> Any:
    """The tree that `write_checkpoint` wrote, on the devices that it was on, where they are here. Raises `FileNotFoundError` where there is none."""
    folder = epath.Path(path).absolute()
    saved = ocp.StandardCheckpointHandler().metadata(folder / "arrays").tree
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        arrays = ocp.args.StandardRestore({name: _array_here(array) for name, array in saved.items()})
        restored = checkpointer.restore(folder, ocp.args.Composite(arrays=arrays, outline=ocp.args.JsonRestore()))
    return _filled(restored["outline"]["tree"], restored["arrays"])


def remove_checkpoint(path: Any) -> None:
    """Remove a checkpoint or a file. Raises `FileNotFoundError` where there is none, and `OSError` for a folder that is no checkpoint."""
    if _is_checkpoint(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def copy_checkpoint(source: Any, target: Any) -> Any:
    """Copy a checkpoint or a file to `target`, in place of what lies there, or into the folder `target`. Returns the path of the copy.

    Raises `FileNotFoundError` where there is no source, and `shutil.SameFileError` where both are the same.
    """
    target = _place(source, target)
    if not os.path.isdir(source) or _same(source, target):
        return shutil.copyfile(source, target)
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target)


def move_checkpoint(source: Any, target: Any) -> Any:
    """Move a checkpoint or a file to `target`, in place of what lies there, or into the folder `target`. Returns its new path.

    Raises `FileNotFoundError` where there is no source.
    """
    target = _place(source, target)
    if _same(source, target):
        return target
    if os.path.isdir(source):
        shutil.rmtree(target, ignore_errors=True)
    return shutil.move(source, target)


def _place(source: Any, target: Any) -> Any:
    """Where a copy goes: into a folder that is no checkpoint, under its own name."""
    folder = os.path.isdir(target) and not _is_checkpoint(target)
    return os.path.join(target, os.path.basename(os.path.normpath(source))) if folder else target


def _is_checkpoint(path: Any) -> bool:
    return os.path.exists(os.path.join(path, "outline"))


def _same(source: Any, target: Any) -> bool:
    return os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target)


def _array_here(saved: Any) -> Any:
    """What to restore a saved array as: on the default device where its own are not here, as a GPU's are not on a CPU."""
    if saved.sharding is None:
        return np.zeros(saved.shape, saved.dtype)
    try:
        sharding = saved.sharding.to_jax_sharding()
    except ValueError:
        sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax.ShapeDtypeStruct(saved.shape, saved.dtype, sharding=sharding)


def _outline(tree: Any, arrays: dict[str, Any]) -> Any:
    """The tree as JSON, with the numbers of its arrays in their places."""
    node = tree
    if isinstance(node, dict):
        # JSON has no integers as keys, and states of lists of modules do.
        return {"dict": [[key, _outline(value, arrays)] for key, value in node.items()]}
    if isinstance(node, (list, tuple)):
        return {type(node).__name__: [_outline(value, arrays) for value in node]}
    if not isinstance(node, (jax.Array, np.ndarray, np.generic)):
        return {"value": node if node is None or isinstance(node, (bool, int, float, str)) else json.loads(json.dumps(node, default=str))}
    key: Any = isinstance(node, jax.Array) and jnp.issubdtype(node.dtype, jax.dtypes.prng_key)
    name = str(len(arrays))
    key_data: Any = jax.random.key_data
    arrays[name] = key_data(node) if key else node
    return {"key" if key else "array": name}


def _filled(outline: Any, arrays: Any) -> Any:
    ((kind, content),) = outline.items()
    if kind == "dict":
        return {key: _filled(value, arrays) for key, value in content}
    if kind in ("list", "tuple"):
        items = [_filled(value, arrays) for value in content]
        return tuple(items) if kind == "tuple" else items
    if kind == "value":
        return content
    return jax.random.wrap_key_data(arrays[content]) if kind == "key" else arrays[content]
