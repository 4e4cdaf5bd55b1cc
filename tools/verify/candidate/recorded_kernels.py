"""Runs functions of the candidate on what their kernels were given where they ran. Used inside the sandbox, and by the test beside a hole."""

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
from migrate_agent.tools.harness.jax_side.errors import describe_error
from migrate_agent.tools.verify.contract.recorded_rows import ROWS


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> list[dict[str, Any]]:
    """Job entry: for each of `calls` the result's tree, or the `error`. Writes the arrays of call N as `N.safetensors`."""
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
        return {"error": describe_error(error, Path(sys.path[0]))["error"]}
    tensor_files.save(output / f"{index}.safetensors", leaves)
    return {"tree": tree}


def answer(
    function: Callable[..., Any], arguments: Mapping[str, Any], renamed: Mapping[str, str], tensors: Path | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tree and the arrays (`0`, `1`, …) of what a function gives for recorded arguments. Raises what it raises."""
    held = tensor_files.load(tensors) if tensors is not None else {}
    given = [jnp.asarray(held[f"in/{number}"]) for number in range(sum(name.startswith("in/") for name in held))]
    args, kwargs = trees.decode(dict(arguments), given, renamed)
    leaves: list[Any] = []
    tree = trees.encode(function(*args, **kwargs), leaves, lambda value: isinstance(value, (jax.Array, np.ndarray, np.generic)))
    return tree, {str(number): np.asarray(leaf) for number, leaf in enumerate(leaves)}


def problems(function: Callable[..., Any], folder: Path) -> list[str]:
    """What is wrong with a function that takes a kernel's place, by the calls of it that lie in a folder: nothing where it is right."""
    from migrate_agent.tools.verify.evidence.recorded_kernels import differences

    found = []
    for index, row in enumerate(json.loads((folder / ROWS).read_text(encoding="utf-8"))):
        tensors = folder / row["tensors"] if row["tensors"] else None
        tree, got = answer(function, row["arguments"], {}, tensors)
        problem, measured, (same, _) = differences(row["result"], tensor_files.load(tensors) if tensors else {}, tree, got)
        if problem or measured > same:
            found.append(f"call {index}: {problem or f'relative error {measured:.1e}, limit {same:.0e}'}")
    return found
