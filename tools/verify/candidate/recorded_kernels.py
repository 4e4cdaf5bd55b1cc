"""Runs functions of the candidate on the recorded arguments of the original's kernels. Used inside the sandbox, and by the test beside a hole."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from migrate_agent.tools.harness.common import tensor_files, trees
from migrate_agent.tools.harness.jax_side.errors import CompilerFailed, describe_error
from migrate_agent.tools.verify.contract.recorded_rows import ROWS


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: for each of `calls` the result's tree, or the `error`, or why it is `unknown`. Writes the arrays of call N as `N.safetensors`."""
    return [
        _guarded(row, arguments["renamed"], inputs.get(f"tensors{index}"), output, index) for index, row in enumerate(arguments["calls"])
    ]


def _guarded(row: Mapping[str, Any], renamed: Mapping[str, str], tensors: Path | None, output: Path, index: int) -> dict[str, Any]:
    try:
        function: Any = importlib.import_module(row["module"])
        for part in row["name"].split("."):
            function = getattr(function, part)
        tree, leaves = answer(function, row["arguments"], renamed, tensors)
    except Exception as error:
        return _described(error)
    tensor_files.save(output / f"{index}.safetensors", leaves)
    return {"tree": tree}


def _described(error: Exception) -> dict[str, Any]:
    try:
        return {"error": describe_error(error, Path(sys.path[0]))["error"]}
    except CompilerFailed as failure:
        return {"unknown": str(failure)}


def answer(
    function: Callable[..., Any], arguments: Mapping[str, Any], renamed: Mapping[str, str], tensors: Path | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The result of a function for recorded arguments: its tree, and its arrays by number. Raises the errors of the function."""
    stored = tensor_files.load(tensors) if tensors is not None else {}
    inputs = [jnp.asarray(stored[f"in/{number}"]) for number in range(sum(name.startswith("in/") for name in stored))]
    args, kwargs = trees.decode(dict(arguments), inputs, renamed)
    leaves: list[Any] = []
    tree = trees.encode(function(*args, **kwargs), leaves, lambda value: isinstance(value, (jax.Array, np.ndarray, np.generic)))
    return tree, {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}


def problems(function: Callable[..., Any], folder: Path) -> list[str]:
    """Problems of a function that replaces a kernel, by the kernel's recorded calls in `folder`; empty where all results agree."""
    from migrate_agent.tools.verify.evidence.recorded_kernels import differences

    messages = []
    for index, row in enumerate(json.loads((folder / ROWS).read_text(encoding="utf-8"))):
        tensors = folder / row["tensors"] if row["tensors"] else None
        tree, actual = answer(function, row["arguments"], {}, tensors)
        problem, measured, (limit, _) = differences(row["result"], tensor_files.load(tensors) if tensors else {}, tree, actual)
        if problem or measured > limit:
            messages.append(f"call {index}: {problem or f'relative error {measured:.1e}, limit {limit:.0e}'}")
    return messages
