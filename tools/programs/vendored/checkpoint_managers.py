"""Checkpoints of a training run by orbax: weights, statistics, optimizer, streams of random numbers, and what the script counts itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orbax.checkpoint as ocp
from etils import epath
from flax import nnx


def checkpoint_manager(folder: Any, max_to_keep: int | None = None) -> ocp.CheckpointManager:
    """The checkpoints in a folder, which is made where it is missing; only the newest `max_to_keep` stay, or all.

    Use it in a `with` statement, or call `wait_until_finished()` at the end: checkpoints are written in the background.
    """
    return ocp.CheckpointManager(epath.Path(folder).absolute(), options=ocp.CheckpointManagerOptions(max_to_keep=max_to_keep, create=True))


def save_training_state(manager: ocp.CheckpointManager, step: int, state: Any, meta: Mapping[str, Any] | None = None) -> None:
    """Write a checkpoint. `state` is a module or a tuple, such as `(model, optimizer)`; all its variables are kept.

    `meta` holds what the script counts itself, such as the epoch, the best metric, and `state_dict()` or `get_state()` of schedules and generators.
    On several processes each of them must call this.
    """
    arrays = ocp.args.StandardSave(_by_text(nnx.to_pure_dict(nnx.state(state))))
    manager.save(step, args=ocp.args.Composite(state=arrays, meta=ocp.args.JsonSave(_plain(meta or {}))))


def restore_training_state(manager: ocp.CheckpointManager, state: Any, step: int | None = None) -> dict[str, Any] | None:
    """Put the newest checkpoint, or that of `step`, into `state` in place, and give its `meta`; `None` where there is no checkpoint.

    Arrays come back with the shardings that those of `state` have.
    """
    newest = manager.latest_step() if step is None else step
    if newest is None:
        return None
    now = nnx.state(state)
    arrays = ocp.args.StandardRestore(_by_text(nnx.to_pure_dict(now)))
    saved = manager.restore(newest, args=ocp.args.Composite(state=arrays, meta=ocp.args.JsonRestore()))
    nnx.replace_by_pure_dict(now, _as_before(saved.state, nnx.to_pure_dict(now)))
    nnx.update(state, now)
    return dict(saved.meta)


def _by_text(tree: Any) -> Any:
    """The tree with texts for keys: the numbers of lists and of transforms in a chain become texts on disk."""
    return {str(key): _by_text(value) for key, value in tree.items()} if isinstance(tree, Mapping) else tree


def _as_before(tree: Any, like: Any) -> Any:
    """The tree with the keys that it had."""
    return {key: _as_before(tree[str(key)], value) for key, value in like.items()} if isinstance(like, Mapping) else tree


def _plain(value: Any) -> Any:
    """What JSON holds: arrays as lists, NumPy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
