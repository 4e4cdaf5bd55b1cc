"""The original in its real configuration on torch's meta device: shapes and dtypes, and no numbers. Runs inside the sandbox.

https://docs.pytorch.org/docs/stable/meta.html
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch

from migrate_agent.tools.harness.common import methods, reach, trees
from migrate_agent.tools.harness.common.example_text import call_arguments, construct, import_module, in_mode, load_unit, make_namespace
from migrate_agent.tools.harness.common.partial_import import use_parts, use_roots
from migrate_agent.tools.harness.torch_side.module import dtype_name, is_leaf
from migrate_agent.tools.harness.torch_side.value_trees import map_tree
from migrate_agent.tools.types import Example
from migrate_agent.tools.verify.original.outputs import one_line


def run(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry. `arguments`: `module`, `name`, `roots`, `parts`, and `full`, the example's texts with the real configuration as `init`.

    Gives `state`, name → shape and dtype; the `number` of parameters, tied ones once; and `outputs`, shape and dtype of each array, or why there are
    none (`no_outputs`). Or `error`, where it cannot be constructed without numbers.
    """
    reach.count(Path(sys.path[0]))
    use_roots(arguments["roots"])
    use_parts(arguments["parts"], Path(sys.path[0]))
    texts = arguments["full"]
    example = Example("", texts["init"], texts["call"], texts["setup"], tensors=inputs.get("tensors"), method=str(texts.get("method", "")))
    module, name = arguments["module"], arguments["name"]
    namespace = make_namespace(import_module(module), example)
    try:
        with torch.device("meta"):
            unit = construct(cast(Any, load_unit(module, name, texts["init"])), _uncalled(example), namespace)
    except Exception as error:
        return {"error": one_line(error)}
    state = {key: [list(value.shape), dtype_name(value)] for key, value in unit.state_dict().items()}
    described = {"state": state, "number": sum(value.numel() for value in unit.parameters())}
    try:
        return {**described, "outputs": _outputs(unit, example, namespace)}
    except Exception as error:
        return {**described, "no_outputs": one_line(error)}


def _uncalled(example: Example) -> Example:
    return Example(example.unit, example.init, "", example.setup, tensors=example.tensors)


def _outputs(unit: Any, example: Example, namespace: Mapping[str, Any]) -> list[list[Any]]:
    """Shape and dtype of each array that an evaluation pass on the example's arguments gives. Raises what needs numbers."""
    arguments = call_arguments(example, dict(namespace))
    args, kwargs = map_tree(lambda value: value.to("meta") if isinstance(value, torch.Tensor) else value, arguments)
    leaves: list[Any] = []
    with torch.no_grad(), torch.device("meta"):
        result = methods.bound(in_mode(unit, training=False), example.method)(*args, **kwargs)
        trees.encode(trees.with_objects(result, (args, kwargs)), leaves, is_leaf)
    return [[list(leaf.shape), dtype_name(leaf)] for leaf in leaves]
