"""Describes an example's call: the tree of its arguments, and shape and dtype of its arrays. Runs inside the sandbox, on the original's side."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.common import tensor_files, trees
from migrate_agent.tools.harness.common.example_text import call_arguments, import_module, make_namespace
from migrate_agent.tools.harness.torch_side.module import dtype_name, is_leaf, to_numpy
from migrate_agent.tools.types import Example


def describe(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. Writes `inputs<number>.safetensors`, the arrays of each example.

    Gives `{"examples": [{"tree": …, "leaves": [[shape, dtype], …]}]}`; of an example that does not run, `{"error": …}`.
    """
    import_module(arguments["module"])
    module = importlib.import_module(arguments["module"])
    rows = []
    for index, texts in enumerate(arguments["examples"]):
        try:
            rows.append(_save_call(module, texts, inputs.get(f"tensors{index}"), output / f"inputs{index}.safetensors"))
        except Exception as error:
            rows.append({"error": f"{type(error).__name__}: {error}"[:300]})
    return {"examples": rows}


def _save_call(module: Any, texts: Mapping[str, Any], tensors: Path | None, path: Path) -> dict[str, Any]:
    example = Example(unit="", init=texts["init"], call=texts["call"], setup=texts["setup"], tensors=tensors)
    leaves: list[Any] = []
    tree = trees.encode(call_arguments(example, make_namespace(module, example)), leaves, is_leaf)
    tensor_files.save(path, {str(index): to_numpy(leaf) for index, leaf in enumerate(leaves)})
    return {"tree": tree, "leaves": [[list(leaf.shape), dtype_name(leaf)] for leaf in leaves]}
