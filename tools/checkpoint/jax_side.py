"""The entries of a port's state dictionary and the variables behind them. Runs inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate_agent.tools.harness.jax_side.errors import describe_error
from migrate_agent.tools.harness.jax_side.module import Candidate
from migrate_agent.tools.weights import leaves, variable_paths


def describe(arguments: Mapping[str, Any], inputs: Mapping[str, Path], output: Path) -> dict[str, Any]:
    """Job entry: `built` holds, for each of the `examples`, the entries of the module that it constructs, or why it constructs none."""
    return {"built": [_describe(arguments, texts) for texts in arguments["examples"]]}


def _describe(arguments: Mapping[str, Any], texts: Mapping[str, Any]) -> dict[str, Any]:
    try:
        model = Candidate(arguments["module"], arguments["name"], texts, None, exact=False).model
        paths = variable_paths(model)
        entries = [
            {
                "name": name,
                "path": paths[name],
                "shape": list(leaf.shape),
                "axes": None if leaf.axes is None else list(leaf.axes),
                "index": list(leaf.index),
                "dtype": str(leaf.variable.get_value().dtype),
            }
            for name, leaf in leaves(model).items()
        ]
    except Exception as error:
        return {"error": describe_error(error, Path.cwd())["error"]}
    return {"entries": entries}
